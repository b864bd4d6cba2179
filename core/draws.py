"""Counter-based randomness: a draw is a pure function of a name and a row id.

The same bits on every platform, in any order, on any number of processes; no generator to carry along. The mixing
function is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), applied twice. It hides nothing: streams
of a secret seed are drawn by a cipher (`secret_draws`).
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from .secret_draws import MARK, draw_secret_bits

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def derive_key(name: str) -> int:
    """The 64-bit key of a named stream."""
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big")


def draw_bits(name: str, counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64 random bits for each counter (a row id, or 0, 1, 2 ..) in the stream called `name`; same shape."""
    counters = np.asarray(counters, np.uint64)
    if name.startswith(MARK):
        return draw_secret_bits(name, counters)
    return _mix_bits(_mix_bits(counters + _GOLDEN) ^ np.uint64(derive_key(name)))


def draw_below(name: str, counters: NDArray[np.uint64], bound: int) -> NDArray[np.int64]:
    """A number in [0, bound) for each counter; bound <= 2^31. Multiply-shift: the bias is under bound / 2^32."""
    if not 0 < bound <= 2**31:
        raise ValueError(f"bound must be in 1..2^31, not {bound}")
    return ((draw_bits(name, counters) >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)


def draw_uniform(name: str, counters: NDArray[np.uint64]) -> NDArray[np.float64]:
    """A number in [0, 1) for each counter, with 53 random bits."""
    return (draw_bits(name, counters) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def draw_permutation(name: str, counters: NDArray[np.uint64]) -> NDArray[np.int64]:
    """A permutation of the positions of `counters`: by their draws, ties (2^-64) by the counters themselves."""
    counters = np.asarray(counters, np.uint64)
    drawn = draw_bits(name, counters)
    order = np.argsort(drawn)
    ties = (drawn[order[1:]] == drawn[order[:-1]]).any()  # only of equal counters, and then the sort has to be stable
    return np.lexsort((counters, drawn)) if ties else order
