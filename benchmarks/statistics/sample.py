"""Samples, from which intervals are computed: a statistic measured on rows with training seeds.

A mean over rows has a score per row and seed. Other statistics (macro-F1, AUROC, calibration error) do not; their row
variance is estimated by leaving out one group of rows at a time (variance_estimate.py), from the mergeable states of
the metric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate
from math import nan, sqrt
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from .clusters import (
    INDEPENDENT,
    Clustering,
    Codes,
    encode_clusters,
    estimate_mean_covariance,
    make_clustering,
)
from .variance_estimate import (
    VarianceEstimate,
    compute_average,
    estimate_half_sample_variance,
    estimate_jackknife_variance,
    estimate_row_variance,
    has_finite_ends,
    make_balanced_halves,
    subtract_interaction,
)

Scores = NDArray[np.float64]

GROUPS = 50
"""The number of jackknife groups: enough that the t interval is hardly wider than a normal one."""

HALVED = 32
"""The number of groups for half-samples: a power of two, as required for balance."""


@dataclass(frozen=True)
class RowScores:
    """A mean over rows: `scores` has shape (seeds, rows), `clusters` (rows,) the cluster of each row (clusters.py);
    `bounds`: the minimum and maximum possible value."""

    scores: Scores
    bounds: tuple[float, float] = (0.0, 1.0)
    clusters: Codes | None = None
    bias: ClassVar[float] = 0.0

    @property
    def per_seed(self) -> list[float]:
        """The value of each seed."""
        return [compute_average(row) for row in self.scores.tolist()]

    @property
    def rows(self) -> int:
        return int(self.scores.shape[1])

    @property
    def why(self) -> str:
        """The reason if there is no value or no variance; else empty."""
        if not self.rows:
            return "there are no rows"
        lacking = int((~np.isfinite(self.scores)).any(axis=0).sum())
        return f"{lacking} of {self.rows} rows have no finite score" if lacking else ""

    @property
    def clustering(self) -> Clustering:
        """How `spread` treats clusters of rows."""
        return make_clustering(self.clusters)

    def spread(self) -> VarianceEstimate:
        """Estimate the variance component of the seeds' mean that comes from the sampling of rows."""
        return estimate_row_variance(self.scores, self.bounds, self.clusters)

    def shift(self) -> float:
        """Return the change by one more entirely right and one more entirely wrong row; 0 if its scale is not bounded
        on both sides."""
        low, high = self.bounds
        if not has_finite_ends(self.bounds):
            return 0.0
        return (low + high - 2 * compute_average(self.per_seed)) / (self.rows + 2)

    def interaction(self) -> float:
        """Estimate the variance of the seeds' mean from the interaction of rows and seeds, which is included both in
        `spread` and in the variance of the seeds' values. 0 for a single seed, for which it cannot be estimated."""
        each = np.concatenate([self.scores, self.scores.mean(axis=0, keepdims=True)])
        *alone, pooled = np.diag(estimate_mean_covariance(each, self.clusters)[0])
        return _estimate_interaction(np.array(alone), pooled)

    def pooled(self) -> RowScores:
        """Average over seeds, giving one seed."""
        return RowScores(self.scores.mean(axis=0)[None, :], self.bounds, self.clusters)

    def minus(self, other: Any) -> RowScores:
        """Subtract another sample measured on the same rows, seed by seed."""
        return RowScores(self.scores - other.scores, subtract_bounds(self.bounds, other.bounds), self.clusters)

    def select(self, rows: NDArray[Any]) -> RowScores:
        """Select some of the rows, by positions or a mask."""
        clusters = None if self.clusters is None else encode_clusters(self.clusters[rows])
        return RowScores(self.scores[:, rows], self.bounds, clusters)


@dataclass(frozen=True)
class Replicates:
    """A statistic of rows: its value per seed, and `without` each group of rows, shape (seeds, groups): NaN where it is
    not defined on the remaining rows. `ends` (seeds, 2, K): its change by one more entirely wrong row, and one more
    entirely right row, of each of K kinds that are as likely. `bias`: that of the seeds' mean, as far as it is known.
    `why`: the reason if it is not defined. Methods are those of `RowScores`."""

    per_seed: list[float]
    without: Scores
    sizes: NDArray[np.int64]
    bounds: tuple[float, float]
    clustering: Clustering = INDEPENDENT
    ends: Scores | None = None
    bias: float = 0.0
    why: str = ""

    @property
    def rows(self) -> int:
        return int(self.sizes.sum())

    def spread(self) -> VarianceEstimate:
        group_part = self._drawn()
        return VarianceEstimate(group_part.variance + self.end_variance, group_part.df)

    @property
    def end_variance(self) -> float:
        """The variance that a row at each end of the scale adds to the seeds' mean."""
        return 0.0 if self.ends is None else float(np.sum(np.mean(self.ends.mean(axis=0) ** 2, axis=1)))

    def _drawn(self) -> VarianceEstimate:
        """Estimate the part of the row variance given by the groups."""
        if len(self.sizes) < 2:
            return VarianceEstimate(nan, 0)
        return estimate_jackknife_variance(compute_average(self.per_seed), self.without.mean(axis=0), self.sizes)

    def interaction(self) -> float:
        if len(self.per_seed) < 2 or len(self.sizes) < 2:
            return 0.0
        seeds = zip(self.per_seed, self.without, strict=True)
        alone = [estimate_jackknife_variance(value, without, self.sizes).variance for value, without in seeds]
        return _estimate_interaction(np.array(alone), self._drawn().variance)

    def pooled(self) -> Replicates:
        without = self.without.mean(axis=0)[None, :]
        ends = None if self.ends is None else self.ends.mean(axis=0)[None]
        return replace(self, per_seed=[compute_average(self.per_seed)], without=without, ends=ends)

    def minus(self, other: Any) -> Replicates:
        values = [a - b for a, b in zip(self.per_seed, other.per_seed, strict=True)]
        with np.errstate(invalid="ignore"):  # infinity minus infinity is not defined
            without = self.without - other.without
        # A row at the end is wrong for one side and right for the other.
        ends = None if self.ends is None or other.ends is None else self.ends - other.ends[:, ::-1]
        bounds, bias = subtract_bounds(self.bounds, other.bounds), self.bias - other.bias
        return Replicates(values, without, self.sizes, bounds, self.clustering, ends, bias, self.why or other.why)


Sample: TypeAlias = RowScores | Replicates
"""A statistic measured with several seeds on the same rows."""


def estimate_shared_variance(sample: Sample) -> VarianceEstimate:
    """Estimate the row variance of the seeds' mean that is shared by its seeds: without the interaction, which the
    variance of the seeds' means includes (`subtract_interaction`)."""
    return subtract_interaction(sample.spread(), sample.interaction())


def _estimate_interaction(alone: NDArray[np.float64], pooled: float) -> float:
    """Estimate the interaction variance in the mean of S seeds, from the row variance of each seed's value, `alone`
    (S,), and that of their mean, `pooled`: alone estimates R + I, pooled R + I / S, and the result is I / S."""
    seeds, excess = len(alone), float(alone.mean()) - pooled
    return excess / (seeds - 1) if seeds > 1 and excess > 0 else 0.0


def subtract_bounds(left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    return left[0] - right[1], left[1] - right[0]


def assign_row_groups(row_ids: NDArray[np.uint64], clusters: Codes | None = None) -> NDArray[np.int64]:
    """Assign each row to a jackknife group, (n,), 0 .. G - 1 with G of `count_jackknife_groups`, from the rows'
    `clusters` (n,)."""
    return deal_rows(row_ids, clusters, count_jackknife_groups(row_ids, clusters))


def count_jackknife_groups(row_ids: NDArray[np.uint64], clusters: Codes | None) -> int:
    """Return the number of jackknife groups: GROUPS, or the number of random clusters or of rows if it is smaller."""
    clustering = make_clustering(clusters)
    return min(GROUPS, (clustering.count or 0) if clustering.treated == "random" else len(row_ids))


def deal_rows(row_ids: NDArray[np.uint64], clusters: Codes | None, groups: int) -> NDArray[np.int64]:
    """Assign rows to `groups` groups in a random order determined by row ids, shape (n,).

    Random clusters are assigned whole, so group sizes differ by at most one cluster. Fixed clusters are treated as
    strata, so that every group has a proportional share of each. Without clusters, group sizes differ by at most one
    row."""
    how = make_clustering(clusters).treated
    if clusters is not None and how == "random":
        names, first = np.unique(clusters[draw_permutation("jackknife", row_ids)], return_index=True)
        cluster_group = np.empty(int(names[-1]) + 1, np.int64)
        cluster_group[names[np.argsort(first)]] = np.arange(len(names)) % groups
        return cluster_group[clusters]
    return deal_within_strata(row_ids, clusters if how == "fixed" else None, groups)


def deal_within_strata(row_ids: NDArray[np.uint64], strata: Codes | None, groups: int) -> NDArray[np.int64]:
    """Assign rows to groups such that each has a proportional share of each of the `strata` (n,), shape (n,)."""
    order, row_group = draw_permutation("jackknife", row_ids), np.empty(len(row_ids), np.int64)
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
    row_group[order] = np.arange(len(row_ids)) % groups
    return row_group


def make_replicates(
    states: Sequence[Sequence[Any]],
    merge: Callable[[Any, Any], Any],
    compute: Callable[[Any], float],
    sizes: NDArray[np.int64],
    bounds: tuple[float, float],
    clustering: Clustering = INDEPENDENT,
) -> Replicates:
    """Make replicates of a statistic from its states per seed and group, `states[seed][group]`, groups of `sizes`
    rows."""
    if len(sizes) < 2:  # a single row: no rows remain without it
        alone = [compute(state) for (state,) in states]
        return Replicates(alone, np.full((len(states), 1), nan), sizes, bounds, clustering)
    values, without = [], []
    for row in states:
        before = [*accumulate(row, merge)]  # groups 0 .. g
        after = [*accumulate(reversed(row), lambda later, state: merge(state, later))][::-1]  # groups g .. G - 1
        inner = [merge(left, right) for left, right in zip(before, after[2:], strict=False)]
        values.append(compute(before[-1]))
        without.append([compute(state) for state in (after[1], *inner, before[-2])])
    return Replicates(values, np.array(without), sizes, bounds, clustering)


def make_half_replicates(
    states: Sequence[Sequence[Any]],
    merge: Callable[[Any, Any], Any],
    compute: Callable[[Any], float],
    sizes: NDArray[np.int64],
    bounds: tuple[float, float],
    clustering: Clustering = INDEPENDENT,
) -> Replicates:
    """Make replicates of a non-smooth statistic (the worst group, a quantile over groups, a mean of absolute values)
    from 2^k groups.

    Leaving out one group of rows changes a non-smooth statistic too rarely, or by too much. The contribution of group g
    is therefore computed from balanced halves of the groups (variance_estimate.py): with t_r the statistic on half r, h
    their mean, and s_rg = 1 if g is in half r and -1 if not,

        e_g = mean over r of s_rg (t_r - h)      without g: t - c e_g

    which for a mean of equal groups and c = 1 is exactly the value without g. c is chosen to give the variance of the
    half-samples around h: it exceeds 1 by the part of this variance that a sum over groups does not explain.

    The noise of rows biases such a statistic by an amount proportional to 1 / sqrt(rows) at most, so that the halves
    show it: bias = (h - t) / (sqrt(2) - 1) (the generalised jackknife of Schucany et al., JASA 1971)."""
    if len(sizes) < 2:
        return make_replicates(states, merge, compute, sizes, bounds, clustering)
    halves = make_balanced_halves(len(sizes))
    values, without, biases = [], [], []
    for row in states:
        value = compute(reduce(merge, row))
        on_halves = np.array(
            [compute(reduce(merge, [row[group] for group in np.flatnonzero(half).tolist()])) for half in halves]
        )
        centre = float(on_halves.mean())
        adds = (np.where(halves, 1.0, -1.0) * (on_halves - centre)[:, None]).mean(axis=0)
        summed = estimate_jackknife_variance(value, value - adds, sizes).variance
        if summed > 0:
            half_sample_variance = estimate_half_sample_variance(centre, on_halves, halves, sizes).variance
            adds = adds * max(1.0, sqrt(half_sample_variance / summed))
        values.append(value)
        without.append(value - adds)
        biases.append((centre - value) / (sqrt(2) - 1))
    return Replicates(values, np.array(without), sizes, bounds, clustering, bias=compute_average(biases))
