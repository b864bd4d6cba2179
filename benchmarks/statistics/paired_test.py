"""Paired comparison of two models on the same rows: the difference with its interval, and exact tests.

The exact test is valid for any number of rows, and applies to these trained models: it covers the sampling of rows, but
not training noise. The t test covers rows and training seeds, as the interval does, and is the test for a difference
between training methods.

McNemar's exact test, for correct and incorrect predictions of two models on the same rows.

Only discordant rows, on which exactly one model is right, are informative: of n discordant rows, one model is right on
b and the other on c. If the models are equal, b is binomial with n trials and probability 1/2 (McNemar, Psychometrika
1947). The exact two-sided p-value is 2 P(B <= min(b, c)), at most 1. Since b is discrete, the test is conservative: at
the 5 % level, it rejects in at most 5 %. The mid-p, which counts the observed outcome half, is close to 5 % (Fagerland,
Lydersen and Laake, BMC Medical Research Methodology 2013).

The exact sign-flip test, for a small number of paired differences of any size.

If two models are equal, each paired difference is equally likely to have either sign: all 2^n sign patterns are equally
likely, and the p-value is the share of patterns whose sum is at least as far from 0 as the observed sum (Fisher, The
Design of Experiments, 1935; Pitman 1937). Differences of 0 are uninformative. All patterns are enumerated for up to
EXACT differences; for more, FLIPS random patterns are drawn and the observed one is added, so that the test remains
valid (Phipson and Smyth 2010). If rows are clustered, the signs of the clusters' sums are flipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits
from .clusters import Codes, make_clustering
from .interval import combine_crossed_variances, estimate_bounded_seed_variance, estimate_paired_difference
from .sample import RowScores, Sample
from .variance_estimate import compute_average, compute_two_sided_p


def compare_rows(left: Sample, right: Sample) -> dict[str, Any]:
    """Compare two models, left - right, on the same rows and clusters, with one or more seeds each. Returns plain JSON:

    difference: its value and 95 % interval (`interval.estimate_paired_difference`). test, p, tests: the name of the
    exact test, its two-sided p-value, and the population it refers to; all None if there is no exact test, as for a
    metric that is not a mean over rows (macro-F1, AUROC), for which only the t test is available. McNemar's test also
    has mid_p, and the numbers of rows on which only_left and only_right is right. t: p and df of the t test over the
    sources of variance of the interval."""
    difference = estimate_paired_difference(left, right)
    record: dict[str, Any] = {"difference": difference.to_dict(), "test": None, "p": None, "tests": None, "t": None}
    if not difference.defined:
        return record
    p, df = run_paired_t(left, right)
    record["t"] = {"p": p, "df": None if df is None else round(df, 1)}
    if not isinstance(left, RowScores) or not isinstance(right, RowScores):
        return record
    record["tests"] = "these trained models, on other rows like these"
    if make_clustering(left.clusters).treated == "random":
        record["tests"] = "these trained models, on other clusters of rows like these"
    return record | _run_exact_test(left, right)


def _run_exact_test(left: RowScores, right: RowScores) -> dict[str, Any]:
    clustered = make_clustering(left.clusters).treated == "random"
    if not clustered and (counts := _count_one_sided_rows(left, right)) is not None:
        p, mid_p = run_mcnemar(*counts)
        record = {"test": "McNemar, exact binomial", "p": p, "mid_p": mid_p}
        return record | {"only_left": counts[0], "only_right": counts[1]}
    flipped = compute_flip_units(left.scores.mean(axis=0) - right.scores.mean(axis=0), left.clusters)
    if len(flipped) > MOST:
        return {"tests": None}
    p = run_sign_flip(flipped)
    patterns = f"all 2^{len(flipped)} patterns" if len(flipped) <= EXACT else f"{FLIPS:,} random patterns"
    return {"test": f"sign flips of {'cluster sums' if clustered else 'row differences'}, {patterns}", "p": p}


def _count_one_sided_rows(left: RowScores, right: RowScores) -> tuple[int, int] | None:
    """Count the rows on which only the left, and only the right model is right; None if scores are not binary, as with
    several seeds."""
    both = np.concatenate([left.scores, right.scores])
    if len(both) != 2 or not ((both == 0) | (both == 1)).all():
        return None
    a, b = both == 1
    return int((a & ~b).sum()), int((b & ~a).sum())


def adjust_by_holm(p: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Adjust the p-values `p` (m,) of several tests, such as every entry against one baseline, by Holm's method
    (Scandinavian Journal of Statistics 1979), returned in the same order: the smallest is multiplied by m, the next by
    m - 1 .., and the results are made non-decreasing. A test rejects at the 5 % level if its value is at most 0.05,
    which controls the family-wise error rate under any dependence of the tests."""
    given = np.asarray(p, np.float64)
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError("p-values must lie in [0, 1]: exclude tests without a p-value")
    order = np.argsort(given, kind="stable")
    times = np.arange(len(given), 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(given[order] * times), 1.0)
    return adjusted


def run_paired_t(left: Sample, right: Sample) -> tuple[float, float | None]:
    """Return the two-sided p-value and the degrees of freedom (None if nothing varies) of the t test that rejects at
    the 5 % level if and only if the unclipped interval of `estimate_paired_difference` excludes 0."""
    rows = left.pooled().minus(right.pooled())
    known = [estimate_bounded_seed_variance(sample.per_seed, sample.bounds) for sample in (left, right)]
    seeds = [spread for spread in known if spread is not None]
    total = combine_crossed_variances([rows.spread()], seeds, left.interaction() + right.interaction())
    difference = compute_average(left.per_seed) - compute_average(right.per_seed)
    if rows.bias:  # of the value and that without its bias, the nearer to 0
        unbiased = difference - rows.bias
        difference = min(difference, unbiased, key=abs) if difference * unbiased > 0 else 0.0
    if not total.variance:
        return (1.0 if difference == 0 else 0.0), None
    return compute_two_sided_p(abs(difference) / sqrt(total.variance), total.df), total.df


def run_mcnemar(left: int, right: int) -> tuple[float, float]:
    """Return the exact two-sided p-value and the mid-p for `left` rows on which only one model is right and `right`
    rows on which only the other is."""
    from scipy.special import bdtr

    if left + right == 0:
        return 1.0, 1.0
    below, at_most = (
        float(bdtr(k, left + right, 0.5)) if k >= 0 else 0.0 for k in (min(left, right) - 1, min(left, right))
    )
    if left == right:
        return 1.0, 1 - (at_most - below) / 2
    return min(1.0, 2 * at_most), below + at_most


EXACT = 20
FLIPS = 9_999
MOST = 20_000
"""The maximum number of differences for the sign-flip test; for more, the t test is adequate."""

_WORD = 64
_BLOCK = 256
_ROUNDING = 1e-12


def compute_flip_units(differences: NDArray[np.float64], clusters: Codes | None = None) -> NDArray[np.float64]:
    """Return the units to flip: the rows' differences (n,), or their sums over clusters, without zeros. If clusters are
    fixed (clusters.py), rows are flipped."""
    if clusters is None or make_clustering(clusters).treated != "random":
        flipped = differences
    else:
        flipped = np.bincount(clusters, differences).astype(np.float64)
        flipped[np.abs(flipped) <= _ROUNDING * np.abs(differences).sum()] = 0.0  # sums that cancel up to rounding
    nonzero: NDArray[np.float64] = flipped[flipped != 0]
    return nonzero


def run_sign_flip(differences: NDArray[np.float64]) -> float:
    """Return the two-sided p-value of the sign-flip test of units from `compute_flip_units` (n,), over all patterns for
    up to EXACT units; draws are the same on every platform."""
    if not len(differences):
        return 1.0
    sizes = np.abs(differences)
    observed = abs(differences.sum()) - _ROUNDING * sizes.sum()
    if len(differences) <= EXACT:
        return float((np.abs(_compute_all_sums(sizes)) >= observed).mean())
    as_far = sum(int((np.abs(sums) >= observed).sum()) for sums in _draw_random_sums(sizes))
    return (as_far + 1) / (FLIPS + 1)


def _compute_all_sums(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums for all sign patterns with the first sign fixed; the other half are their negatives."""
    sums = sizes[:1]
    for size in sizes[1:].tolist():
        sums = np.concatenate([sums + size, sums - size])
    return sums


def _draw_random_sums(sizes: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return FLIPS sums with random signs, in blocks: 64 signs from each draw."""
    words = -(-len(sizes) // _WORD)
    sums = []
    for start in range(0, FLIPS, _BLOCK):
        count = min(_BLOCK, FLIPS - start)
        counters = np.arange(start * words, (start + count) * words, dtype=np.uint64)
        random_bits = draw_bits("sign-flip", counters).astype("<u8").view(np.uint8).reshape(count, words * _WORD // 8)
        positive = np.unpackbits(random_bits, axis=1, count=len(sizes), bitorder="little")
        sums.append(2 * (positive @ sizes) - sizes.sum())
    return sums
