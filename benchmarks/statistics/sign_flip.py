"""The exact sign-flip test: paired differences of any size, few of them.

Were two models equal, each paired difference could as well have had the other sign: all 2^n patterns of signs are
equally likely, and p is the share of them whose sum is as far from 0 as the one observed (Fisher, The Design of
Experiments, 1935; Pitman 1937). Differences of 0 say nothing. All patterns are gone through for up to EXACT
differences; for more, FLIPS random ones with the observed one added, which keeps the test valid (Phipson and Smyth
2010). Where rows come in clusters it is the clusters' sums whose signs are flipped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.draws import bits
from .clusters import Codes, treated

EXACT = 20
FLIPS = 9_999
MOST = 20_000
"""Differences that are still flipped; the t test of more is as good."""

_WORD = 64
_BLOCK = 256
_ROUNDING = 1e-12


@dataclass(frozen=True)
class SignFlip:
    """p, two-sided; exact: over all patterns; units: how many differences (rows, or clusters of them) are not 0."""

    p: float
    exact: bool
    units: int


def units(differences: NDArray[np.float64], clusters: Codes | None = None) -> NDArray[np.float64]:
    """What is flipped: the rows' differences (n,), or their sums over clusters, those of 0 left out. Clusters too few
    to stand for others (clusters.py) are taken as they are: rows are flipped."""
    if clusters is None or treated(clusters) != "random":
        found = differences
    else:
        found = np.bincount(clusters, differences).astype(np.float64)
        found[np.abs(found) <= _ROUNDING * np.abs(differences).sum()] = 0.0  # what cancels is rounding
    there: NDArray[np.float64] = found[found != 0]
    return there


def sign_flip(differences: NDArray[np.float64], stream: str = "sign-flip") -> SignFlip:
    """The test of `units` (n,), at most MOST; `stream` names the draws, which are the same on every platform."""
    if not len(differences) <= MOST:
        raise ValueError(f"{len(differences)} differences are too many to flip (at most {MOST}): use the t test")
    if not len(differences):
        return SignFlip(1.0, True, 0)
    sizes = np.abs(differences)
    observed = abs(differences.sum()) - _ROUNDING * sizes.sum()
    if len(differences) <= EXACT:
        return SignFlip(float((np.abs(_all_sums(sizes)) >= observed).mean()), True, len(differences))
    as_far = sum(int((np.abs(sums) >= observed).sum()) for sums in _random_sums(sizes, stream))
    return SignFlip((as_far + 1) / (FLIPS + 1), False, len(differences))


def _all_sums(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums over all signs of all but the first: the other half are these with their signs turned."""
    sums = sizes[:1]
    for size in sizes[1:].tolist():
        sums = np.concatenate([sums + size, sums - size])
    return sums


def _random_sums(sizes: NDArray[np.float64], stream: str) -> list[NDArray[np.float64]]:
    """FLIPS sums with random signs, in blocks: 64 signs from each draw."""
    words = -(-len(sizes) // _WORD)
    found = []
    for start in range(0, FLIPS, _BLOCK):
        count = min(_BLOCK, FLIPS - start)
        counters = np.arange(start * words, (start + count) * words, dtype=np.uint64)
        drawn = bits(stream, counters).astype("<u8").view(np.uint8).reshape(count, words * _WORD // 8)
        positive = np.unpackbits(drawn, axis=1, count=len(sizes), bitorder="little")
        found.append(2 * (positive @ sizes) - sizes.sum())
    return found
