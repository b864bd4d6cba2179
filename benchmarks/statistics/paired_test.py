"""Are two models equal on the rows that both answered? The difference with its interval, then p by an exact test.

The exact test holds for any number of rows, and speaks of these trained models: it asks what other rows would have
said. Training noise is not in it. The t test beside it has rows and training seeds in it, as the interval has, and is
what tells one way of training from another.

McNemar's exact test: two models' right and wrong answers to the same rows.

Only rows that one of them has right and the other wrong say anything: of n such rows the one had b, the other c. Were
the models equal, b would be binomial, n throws of a fair coin (McNemar, Psychometrika 1947). The exact two-sided p is 2
P(B <= min(b, c)), at most 1. Since b is a whole number it rejects less often than it says: at the 5 % level in at most
5 %. The mid-p, which counts the observed outcome half, comes near to 5 % (Fagerland, Lydersen and Laake, BMC Medical
Research Methodology 2013).

The exact sign-flip test: paired differences of any size, few of them.

Were two models equal, each paired difference could as well have had the other sign: all 2^n patterns of signs are
equally likely, and p is the share of them whose sum is as far from 0 as the one observed (Fisher, The Design of
Experiments, 1935; Pitman 1937). Differences of 0 say nothing. All patterns are gone through for up to EXACT
differences; for more, FLIPS random ones with the observed one added, which keeps the test valid (Phipson and Smyth
2010). Where rows come in clusters it is the clusters' sums whose signs are flipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits
from .clusters import Codes, choose_cluster_treatment
from .interval import combine_crossed_variances, estimate_paired_difference
from .sample import RowScores, Sample
from .student_t import compute_upper_tail
from .variance_estimate import compute_average, estimate_seed_variance


def compare_rows(left: Sample, right: Sample) -> dict[str, Any]:
    """left - right, two models on the same rows (and clusters), of one seed or more each. Plain JSON:

    difference: its value and 95 % interval (`interval.estimate_paired_difference`). test, p, tests: the exact test by
    name, its two-sided p, and what it speaks of; all None where there is no such test, as of a metric that is no mean
    of rows (macro-F1, AUROC), whose values the t test compares. With McNemar's also mid_p, and the rows that only_left
    and only_right has right. t: p and df of the t test over all that the interval covers."""
    if left.rows != right.rows:
        raise ValueError(f"two models are compared on the same rows, not on {left.rows} and {right.rows}")
    difference = estimate_paired_difference(left, right)
    record: dict[str, Any] = {"difference": difference.to_dict(), "test": None, "p": None, "tests": None, "t": None}
    if not difference.defined:
        return record
    p, df = run_paired_t(left, right)
    record["t"] = {"p": p, "df": None if df is None else round(df, 1)}
    if not isinstance(left, RowScores) or not isinstance(right, RowScores):
        return record
    record["tests"] = "these trained models, on other rows like these"
    if choose_cluster_treatment(left.clusters) == "random":
        record["tests"] = "these trained models, on other clusters of rows like these"
    return record | _run_exact_test(left, right)


def _run_exact_test(left: RowScores, right: RowScores) -> dict[str, Any]:
    clustered = choose_cluster_treatment(left.clusters) == "random"
    if not clustered and (counts := _count_one_sided_rows(left, right)) is not None:
        result = run_mcnemar(*counts)
        return {
            "test": "McNemar, exact binomial",
            "p": result.p,
            "mid_p": result.mid_p,
            "only_left": result.left,
            "only_right": result.right,
        }
    flipped = compute_flip_units(left.scores.mean(axis=0) - right.scores.mean(axis=0), left.clusters)
    if len(flipped) > MOST:
        return {"tests": None}
    flip = run_sign_flip(flipped)
    patterns = f"all 2^{flip.units} patterns" if flip.exact else f"{FLIPS:,} random patterns"
    return {"test": f"sign flips of {'cluster sums' if clustered else 'row differences'}, {patterns}", "p": flip.p}


def _count_one_sided_rows(left: RowScores, right: RowScores) -> tuple[int, int] | None:
    """The rows that only the left, and only the right model has right; None where rows are not simply right or wrong,
    as over several seeds."""
    if len(left.scores) > 1 or len(right.scores) > 1:
        return None
    a, b = _find_right_rows(left.scores[0]), _find_right_rows(right.scores[0])
    return None if a is None or b is None else (int((a & ~b).sum()), int((b & ~a).sum()))


def _find_right_rows(scores: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    right: NDArray[np.bool_] = scores == 1
    return right if (right | (scores == 0)).all() else None


def run_paired_t(left: Sample, right: Sample) -> tuple[float, float | None]:
    """Two-sided p, and the degrees of freedom (None where nothing varies), of the t test that rejects at the 5 % level
    exactly where the interval of `estimate_paired_difference`, before it is cut, excludes 0."""
    rows = left.pooled().minus(right.pooled()).spread()
    seeds = [spread for sample in (left, right) if (spread := estimate_seed_variance(sample.per_seed)) is not None]
    total = combine_crossed_variances([rows], seeds, left.interaction() + right.interaction())
    difference = compute_average(left.per_seed) - compute_average(right.per_seed)
    if not total.variance:
        return (1.0 if difference == 0 else 0.0), None
    return min(1.0, 2 * compute_upper_tail(abs(difference) / sqrt(total.variance), total.df)), total.df


@dataclass(frozen=True)
class McNemar:
    """left, right: the rows that only the one, and only the other has right; p, exact and two-sided; mid_p."""

    left: int
    right: int
    p: float
    mid_p: float


def run_mcnemar(left: int, right: int) -> McNemar:
    """The exact test of `left` rows that only one model has right against `right` that only the other has."""
    fewer, rows = min(left, right), left + right
    if rows == 0:
        return McNemar(left, right, 1.0, 1.0)
    point, below = _compute_binomial_tails(fewer, rows)
    if left == right:
        return McNemar(left, right, 1.0, 1 - point / 2)
    return McNemar(left, right, min(1.0, 2 * below), min(1.0, 2 * below - point))


def _compute_binomial_tails(most: int, throws: int) -> tuple[float, float]:
    """P(B = most) and P(B <= most) of B heads in `throws` throws, for most <= throws / 2.

    Downwards from `most`, each term is the one above it times k / (throws - k + 1); after some tens of standard
    deviations nothing is left to add."""
    point = exp(lgamma(throws + 1) - lgamma(most + 1) - lgamma(throws - most + 1) - throws * log(2))
    k = np.arange(most, max(most - _count_terms(throws), 0), -1, dtype=np.float64)
    return point, point * (1 + float(np.cumprod(k / (throws - k + 1)).sum()))


def _count_terms(throws: int) -> int:
    return 200 + int(20 * throws**0.5)


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


def compute_flip_units(differences: NDArray[np.float64], clusters: Codes | None = None) -> NDArray[np.float64]:
    """What is flipped: the rows' differences (n,), or their sums over clusters, those of 0 left out. Clusters too few
    to stand for others (clusters.py) are taken as they are: rows are flipped."""
    if clusters is None or choose_cluster_treatment(clusters) != "random":
        flipped = differences
    else:
        flipped = np.bincount(clusters, differences).astype(np.float64)
        flipped[np.abs(flipped) <= _ROUNDING * np.abs(differences).sum()] = 0.0  # what cancels is rounding
    nonzero: NDArray[np.float64] = flipped[flipped != 0]
    return nonzero


def run_sign_flip(differences: NDArray[np.float64], stream: str = "sign-flip") -> SignFlip:
    """The test of `compute_flip_units` (n,), at most MOST; `stream` names the draws, which are the same on every
    platform."""
    if not len(differences) <= MOST:
        raise ValueError(f"{len(differences)} differences are too many to flip (at most {MOST}): use the t test")
    if not len(differences):
        return SignFlip(1.0, True, 0)
    sizes = np.abs(differences)
    observed = abs(differences.sum()) - _ROUNDING * sizes.sum()
    if len(differences) <= EXACT:
        return SignFlip(float((np.abs(_compute_all_sums(sizes)) >= observed).mean()), True, len(differences))
    as_far = sum(int((np.abs(sums) >= observed).sum()) for sums in _draw_random_sums(sizes, stream))
    return SignFlip((as_far + 1) / (FLIPS + 1), False, len(differences))


def _compute_all_sums(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums over all signs of all but the first: the other half are these with their signs turned."""
    sums = sizes[:1]
    for size in sizes[1:].tolist():
        sums = np.concatenate([sums + size, sums - size])
    return sums


def _draw_random_sums(sizes: NDArray[np.float64], stream: str) -> list[NDArray[np.float64]]:
    """FLIPS sums with random signs, in blocks: 64 signs from each draw."""
    words = -(-len(sizes) // _WORD)
    sums = []
    for start in range(0, FLIPS, _BLOCK):
        count = min(_BLOCK, FLIPS - start)
        counters = np.arange(start * words, (start + count) * words, dtype=np.uint64)
        random_bits = draw_bits(stream, counters).astype("<u8").view(np.uint8).reshape(count, words * _WORD // 8)
        positive = np.unpackbits(random_bits, axis=1, count=len(sizes), bitorder="little")
        sums.append(2 * (positive @ sizes) - sizes.sum())
    return sums
