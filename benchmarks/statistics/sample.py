"""What a value was measured on, in the form that an interval needs: rows and seeds, of a mean or any other statistic.

A mean of rows has a score per row and seed. Any other statistic (macro-F1, AUROC, calibration error) has none; its row
noise is measured by leaving out one group of rows at a time (jackknife.py), from the mergeable states of its metric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import isfinite, nan, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.draws import shuffled
from .clusters import INDEPENDENT, Clustering, Codes, clustering, codes, count, covariance_of_means, treated
from .half_samples import Halves, balanced_halves, half_sample_spread
from .jackknife import delete_group
from .spread import Spread, average, mean_spread, together

Scores = NDArray[np.float64]

GROUPS = 50
"""Groups that the rows are dealt into for the jackknife: enough for a t interval that is hardly wider than normal."""

HALVED = 32
"""Groups that the rows are dealt into where halves are taken of them: a power of two, as balance asks."""


@dataclass(frozen=True)
class Ends:
    """How far a wholly wrong and a wholly right row more would move a statistic that is no mean of rows: `moved`
    (seeds, 2, K), the wrong ones first, by one row of each of K kinds; `weight`: how many kinds each stands for."""

    moved: Scores
    weight: float = 1.0

    def variance(self) -> float:
        """What they add to the variance of the seeds' mean, beside that of the rows that there are."""
        return self.weight * float(np.sum(self.moved.mean(axis=0) ** 2))

    def shift(self) -> float:
        """How far all of them together would move the seeds' mean."""
        return self.weight * float(np.sum(self.moved.mean(axis=0)))

    def pooled(self) -> Ends:
        """The same with the seeds averaged: one seed."""
        return Ends(self.moved.mean(axis=0)[None], self.weight)

    def minus(self, other: Ends) -> Ends:
        """Of a difference on the same rows: a row at its end is wrong on one side, and right on the other."""
        return Ends(self.moved - other.moved[:, ::-1], self.weight)


class Sample(Protocol):
    """A value measured with several seeds on the same rows."""

    @property
    def per_seed(self) -> list[float]:
        """The value of each seed."""
        ...

    @property
    def rows(self) -> int: ...

    @property
    def why(self) -> str:
        """Where there is no value, or no spread of it, the reason; else empty."""
        ...

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value possible."""
        ...

    @property
    def clustering(self) -> Clustering:
        """What `spread` takes into account of the clusters in which the rows come."""
        ...

    def spread(self) -> Spread:
        """The part of the variance of the seeds' mean that comes from the draw of rows."""
        ...

    def shift(self) -> float:
        """How far a wholly right and a wholly wrong row more (of each kind that the value tells apart) would move it; 0
        where its scale has no two ends."""
        ...

    def interaction(self) -> float:
        """The variance of the seeds' mean that rows and seeds make together. It is in `spread`, and is in the variance
        of the seeds' values as well. 0 for a single seed, of which it cannot be known."""
        ...

    def pooled(self) -> Sample:
        """The same with the seeds averaged: one seed."""
        ...

    def minus(self, other: Any) -> Sample:
        """This value minus another one measured on the same rows, seed by seed."""
        ...


@dataclass(frozen=True)
class RowScores:
    """A mean of rows: `scores` has shape (seeds, rows), `clusters` (rows,) the cluster of each (clusters.py)."""

    scores: Scores
    bounds: tuple[float, float] = (0.0, 1.0)
    clusters: Codes | None = None

    @property
    def per_seed(self) -> list[float]:
        return [average(row) for row in self.scores.tolist()]

    @property
    def rows(self) -> int:
        return int(self.scores.shape[1])

    @property
    def why(self) -> str:
        if not self.rows:
            return "there are no rows"
        lacking = int((~np.isfinite(self.scores)).any(axis=0).sum())
        return f"{lacking} of {self.rows} rows have no finite score" if lacking else ""

    @property
    def clustering(self) -> Clustering:
        return clustering(self.clusters)

    @property
    def means(self) -> Scores:
        """The mean over seeds of each row, (rows,)."""
        found: Scores = self.scores.mean(axis=0)
        return found

    def spread(self) -> Spread:
        return mean_spread(self.scores, self.bounds, self.clusters)

    def shift(self) -> float:
        return (sum(self.bounds) - 2 * average(self.per_seed)) / (self.rows + 2) if finite(self.bounds) else 0.0

    def interaction(self) -> float:
        each = np.concatenate([self.scores, self.scores.mean(axis=0, keepdims=True)])
        *alone, pooled = np.diag(covariance_of_means(each, self.clusters)[0])
        return interaction(np.array(alone), pooled)

    def pooled(self) -> RowScores:
        return RowScores(self.scores.mean(axis=0)[None, :], self.bounds, self.clusters)

    def minus(self, other: RowScores) -> RowScores:
        return RowScores(self.scores - other.scores, _difference(self.bounds, other.bounds), self.clusters)

    def select(self, rows: NDArray[Any]) -> RowScores:
        """Some of the rows: positions or a mask."""
        clusters = None if self.clusters is None else codes(self.clusters[rows])
        return RowScores(self.scores[:, rows], self.bounds, clusters)


@dataclass(frozen=True)
class Replicates:
    """A statistic of rows: its value per seed, and `without` each group of rows, shape (seeds, groups): NaN where that
    leaves no row, or none that it is defined on. `ends`: what rows at the ends of its scale would do.
    `why`: where it is not defined, the reason."""

    per_seed: list[float]
    without: NDArray[np.float64]
    sizes: NDArray[np.int64]
    bounds: tuple[float, float]
    clustering: Clustering = INDEPENDENT
    ends: Ends | None = None
    why: str = ""

    @property
    def rows(self) -> int:
        return int(self.sizes.sum())

    def spread(self) -> Spread:
        drawn = self._drawn()
        if self.ends is None or not isfinite(drawn.variance):
            return drawn
        return together([drawn, Spread(self.ends.variance(), len(self.sizes))])

    def _drawn(self) -> Spread:
        """The part of it that the groups show."""
        if len(self.sizes) < 2:
            return Spread(nan, 0)
        return delete_group(average(self.per_seed), self.without.mean(axis=0), self.sizes)

    def shift(self) -> float:
        return 0.0 if self.ends is None else self.ends.shift()

    def interaction(self) -> float:
        if len(self.per_seed) < 2 or len(self.sizes) < 2:
            return 0.0
        seeds = zip(self.per_seed, self.without, strict=True)
        alone = [delete_group(value, without, self.sizes).variance for value, without in seeds]
        return interaction(np.array(alone), self._drawn().variance)

    def pooled(self) -> Replicates:
        without = self.without.mean(axis=0)[None, :]
        ends = None if self.ends is None else self.ends.pooled()
        return replace(self, per_seed=[average(self.per_seed)], without=without, ends=ends)

    def minus(self, other: Replicates) -> Replicates:
        values = [a - b for a, b in zip(self.per_seed, other.per_seed, strict=True)]
        with np.errstate(invalid="ignore"):  # infinite on both sides: not defined
            without = self.without - other.without
        ends = None if self.ends is None or other.ends is None else self.ends.minus(other.ends)
        bounds = _difference(self.bounds, other.bounds)
        return Replicates(values, without, self.sizes, bounds, self.clustering, ends, self.why or other.why)


def interaction(alone: NDArray[np.float64], pooled: float) -> float:
    """The variance that rows and seeds make together in the mean of S seeds, from the row variances of each seed's own
    value, `alone` (S,), and that of their mean: R + I / S, where alone it is R + I, and what is wanted is I / S."""
    seeds, more = len(alone), float(alone.mean()) - pooled
    return more / (seeds - 1) if seeds > 1 and more > 0 else 0.0


def _difference(left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    return left[0] - right[1], left[1] - right[0]


def row_groups(row_ids: NDArray[np.uint64], clusters: Codes | None = None) -> NDArray[np.int64]:
    """The jackknife group of each row, (n,), 0 .. G - 1 with G of `most_groups`, from the rows' `clusters` (n,)."""
    return deal(row_ids, clusters, most_groups(row_ids, clusters))


def most_groups(row_ids: NDArray[np.uint64], clusters: Codes | None) -> int:
    """Into how many jackknife groups rows are dealt: GROUPS, or as many as there are clusters, or rows."""
    return min(GROUPS, count(clusters) or 0) if treated(clusters) == "random" else min(GROUPS, len(row_ids))


def deal(row_ids: NDArray[np.uint64], clusters: Codes | None, groups: int) -> NDArray[np.int64]:
    """Rows dealt out to `groups` groups in an order drawn by row id, shape (n,).

    Where clusters are a sample of clusters they are dealt whole: groups differ by one in clusters. Where they are fixed
    each is dealt in turn, so that every group has its share of each. Else groups differ by one in rows."""
    order, found = shuffled("jackknife", row_ids), np.empty(len(row_ids), np.int64)
    how = treated(clusters)
    if clusters is not None and how == "random":
        names, first = np.unique(clusters[order], return_index=True)
        place = np.empty(int(names[-1]) + 1, np.int64)
        place[names[np.argsort(first)]] = np.arange(len(names)) % groups
        return place[clusters]
    if clusters is not None and how == "fixed":
        return deal_within(row_ids, clusters, groups)
    found[order] = np.arange(len(row_ids)) % groups
    return found


def deal_within(row_ids: NDArray[np.uint64], strata: Codes, groups: int) -> NDArray[np.int64]:
    """Rows dealt out so that each group has its share of each of the `strata` (n,), shape (n,)."""
    order, found = shuffled("jackknife", row_ids), np.empty(len(row_ids), np.int64)
    order = order[np.argsort(strata[order], kind="stable")]
    found[order] = np.arange(len(row_ids)) % groups
    return found


def replicates(
    states: Sequence[Sequence[Any]],
    merge: Callable[[Any, Any], Any],
    compute: Callable[[Any], float],
    sizes: NDArray[np.int64],
    bounds: tuple[float, float],
    clustering: Clustering = INDEPENDENT,
) -> Replicates:
    """A statistic from its states, one per seed and group of rows: `states[seed][group]`, groups of `sizes` rows."""
    if len(sizes) < 2:  # a single row: nothing is left without it
        alone = [compute(state) for (state,) in states]
        return Replicates(alone, np.full((len(states), 1), nan), sizes, bounds, clustering)
    values, without = [], []
    for row in states:
        before, after = [row[0]], [row[-1]]
        for state in row[1:]:
            before.append(merge(before[-1], state))
        for state in row[-2::-1]:
            after.append(merge(state, after[-1]))
        after.reverse()
        last = len(row) - 1
        left_out = [
            after[1]
            if group == 0
            else before[last - 1]
            if group == last
            else merge(before[group - 1], after[group + 1])
            for group in range(len(row))
        ]
        values.append(compute(before[-1]))
        without.append([compute(state) for state in left_out])
    return Replicates(values, np.array(without), sizes, bounds, clustering)


def half_replicates(
    states: Sequence[Sequence[Any]],
    merge: Callable[[Any, Any], Any],
    compute: Callable[[Any], float],
    sizes: NDArray[np.int64],
    bounds: tuple[float, float],
    clustering: Clustering = INDEPENDENT,
) -> Replicates:
    """The same for a statistic that jumps as rows go (the worst group, a quantile of groups), of 2^k groups.

    Leaving out one group of rows moves such a number too seldom, or by too much. What group g adds is therefore taken
    from balanced halves of the groups (half_samples.py): with t_r the number on half r, and s_rg 1 where g is in it and
    -1 where not,

        e_g = mean over r of s_rg (t_r - t)      without g: t - c e_g

    which for a mean of equal groups is, with c = 1, exactly what it is without g. c is what gives the variance of the
    half-samples themselves: it is above 1 by how much of that no sum over groups explains, the drift of the halves away
    from t among it."""
    if len(sizes) < 2:
        return replicates(states, merge, compute, sizes, bounds, clustering)
    halves = balanced_halves(len(sizes))
    values, without = [], []
    for row in states:
        value = compute(reduce(merge, row))
        on_halves = [compute(reduce(merge, [row[group] for group in np.flatnonzero(half).tolist()])) for half in halves]
        values.append(value)
        without.append(value - _by_groups(value, np.array(on_halves), halves, sizes))
    return Replicates(values, np.array(without), sizes, bounds, clustering)


def _by_groups(value: float, on_halves: Scores, halves: Halves, sizes: NDArray[np.int64]) -> Scores:
    """What each group adds to a value, (G,), from the values on halves of the groups."""
    adds: Scores = (np.where(halves, 1.0, -1.0) * (on_halves - value)[:, None]).mean(axis=0)
    summed = delete_group(value, value - adds, sizes).variance
    whole = half_sample_spread(value, on_halves, halves, sizes).variance
    return adds * max(1.0, sqrt(whole / summed)) if summed > 0 else adds


def finite(bounds: tuple[float, float]) -> bool:
    """Whether both ends of a scale are finite."""
    return isfinite(bounds[0]) and isfinite(bounds[1])
