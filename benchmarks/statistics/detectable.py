"""The minimum detectable difference between two entries on a benchmark.

A two-sided 5 % test of a paired difference with standard error se and df degrees of freedom detects a true difference
of

    (t_(0.975, df) + t_(0.8, df)) se

with 80 % power (2.80 se with many rows, and more with few seeds or clusters). se is that of the test itself
(interval.py): over paired rows or clusters, and the training seeds of both entries.

se is either *measured*, as the average over all pairs of entries, or *assumed*: for two entries that disagree in
correctness on a share d of the n rows, with an intraclass correlation r of these disagreements in clusters of n_c rows,

    se^2 = d / n (1 + r (sum_c n_c^2 / n - 1))

(the design effect of Kish 1965), without training noise, for which there is no generally valid assumption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum, inf, isfinite
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .clusters import Codes, estimate_mean_covariance, make_clustering
from .interval import Record, combine_crossed_variances
from .sample import Sample
from .variance_estimate import (
    VarianceEstimate,
    estimate_seed_variance,
    find_t_quantiles,
    subtract_interaction,
)

SIZE, POWER = 0.05, 0.8
DISAGREEMENT = 0.1
"""The assumed share of rows on which two entries disagree, as in the audit of a split."""


@dataclass(frozen=True)
class Detectable(Record):
    """The minimum detectable difference for the average variance of the measured pairs, and its 10th (`low`) and 90th
    (`high`) percentile over pairs. pairs: the number of measured pairs; 0 if it is assumed. single: the number of pairs
    with a single seed on either side, whose training noise is not covered."""

    value: float
    low: float
    high: float
    pairs: int
    single: int

    DIGITS: ClassVar = 6


def compute_detectable_differences(spreads: Sequence[VarianceEstimate]) -> NDArray[np.float64]:
    """Compute the minimum detectable differences of tests with these variances, in order.

    The power is computed from the central t distribution instead of the noncentral one: the result is 5 % too small for
    2 degrees of freedom, 1 % for 4, and accurate beyond."""
    variance = np.array([spread.variance for spread in spreads])
    df = np.array([spread.df if isfinite(spread.df) else 1.0 for spread in spreads])  # irrelevant without variance
    quantiles: NDArray[np.float64] = find_t_quantiles(SIZE, df) + find_t_quantiles(2 - 2 * POWER, df)
    differences: NDArray[np.float64] = quantiles * np.sqrt(variance)
    return differences


def plan_variance(parts: Sequence[VarianceEstimate]) -> VarianceEstimate:
    """Return the sum of these true variances, and its expected estimated degrees of freedom.

    A test computes Satterthwaite's degrees of freedom from estimates s^2 of the components' variances. With few seeds,
    one estimate is often much larger than the others, and the degrees of freedom are fewer than the true variances
    would give: with E s^4 = (1 + 2 / df) sigma^4 in both places, (S^2 + 2 sum sigma^4 / df) / sum (1 + 2 / df) sigma^4
    / df for the sum S of all sigma^2."""
    total = fsum(part.variance for part in parts)
    shares = [(part.variance / total, part.df) for part in parts if part.variance > 0]
    if not shares:
        return VarianceEstimate(total, inf)
    above = 1 + fsum(2 * share**2 / df for share, df in shares)
    return VarianceEstimate(total, above / fsum((1 + 2 / df) * share**2 / df for share, df in shares))


MOST_PAIRS = 2000
"""The approximate maximum number of pairs evaluated: of more pairs, every k-th in the order of names."""


def measure_detectable(samples: Mapping[str, Sample], seeds: int | None = None) -> Detectable | None:
    """Measure the minimum detectable difference among entries evaluated on the same rows; None for fewer than two.

    seeds: the number of seeds to plan for, with each entry's measured variance between seeds; by default its own."""
    pooled = {name: sample.pooled() for name, sample in sorted(samples.items())}
    by_seeds = {name: _estimate_seed_variance(samples[name], seeds) for name in pooled}
    in_both = {name: samples[name].interaction() for name in pooled}
    rows, variances, single = [], [], 0
    pairs = [*combinations(pooled, 2)]
    for left, right in pairs[:: max(1, len(pairs) // MOST_PAIRS)]:
        known = [spread for name in (left, right) if (spread := by_seeds[name]) is not None]
        row_part = subtract_interaction(pooled[left].minus(pooled[right]).spread(), in_both[left] + in_both[right])
        total = combine_crossed_variances([row_part], known, 0.0)
        if isfinite(total.variance):
            rows.append(row_part)
            variances.append(total)
            single += len(known) < 2
    if not variances:
        return None
    trained = [spread for spread in by_seeds.values() if spread is not None and isfinite(spread.variance)]
    seed_part = [plan_variance([_average_variances(trained)] * 2)] if trained else []
    average = combine_crossed_variances([_average_variances(rows)], seed_part, 0.0)
    low, high = np.quantile(compute_detectable_differences(variances), [0.1, 0.9]).tolist()
    return Detectable(float(compute_detectable_differences([average])[0]), low, high, len(variances), single)


def _average_variances(spreads: Sequence[VarianceEstimate]) -> VarianceEstimate:
    return VarianceEstimate(
        *(fsum(each) / len(spreads) for each in zip(*((spread.variance, spread.df) for spread in spreads), strict=True))
    )


def _estimate_seed_variance(sample: Sample, seeds: int | None) -> VarianceEstimate | None:
    """Return the variance component of an entry's seeds, for `seeds` seeds."""
    estimate = estimate_seed_variance(sample.per_seed)
    if estimate is None or seeds is None:
        return estimate
    return VarianceEstimate(estimate.variance * len(sample.per_seed) / seeds, seeds - 1) if seeds > 1 else None


def assume_detectable(rows: int, clusters: Codes | None = None, within: float = 0.0) -> Detectable:
    """Compute the minimum detectable difference in the share of correct rows, for two entries that disagree on a share
    `DISAGREEMENT` of `rows` rows, with intraclass correlation `within` of disagreements in a cluster.

    clusters (rows,): as from `encode_clusters`. `within` has no effect if clusters are fixed, or if there is only
    one."""
    variance, df = DISAGREEMENT / rows, rows - 1.0
    if clusters is not None and make_clustering(clusters).treated == "random":
        sizes = np.bincount(clusters)
        variance *= 1 + within * (float((sizes**2).sum()) / rows - 1)
        df = estimate_mean_covariance(np.zeros((1, rows)), clusters)[1]
    difference = float(compute_detectable_differences([VarianceEstimate(variance, df)])[0])
    return Detectable(difference, difference, difference, 0, 0)
