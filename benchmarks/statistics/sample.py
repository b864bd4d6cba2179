"""What a value was measured on, in the form that an interval needs: rows and seeds, of a mean or any other statistic.

A mean of rows has a score per row and seed. Any other statistic (macro-F1, AUROC, calibration error) has none; its row
noise is measured by leaving out one group of rows at a time (jackknife.py), from the mergeable states of its metric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...splits.draws import shuffled
from .jackknife import delete_group
from .spread import Spread, average, mean_spread

Scores = NDArray[np.float64]

GROUPS = 50
"""Groups that the rows are dealt into for the jackknife: enough for a t interval that is hardly wider than normal."""


class Sample(Protocol):
    """A value measured with several seeds on the same rows."""

    @property
    def per_seed(self) -> list[float]:
        """The value of each seed."""
        ...

    @property
    def rows(self) -> int: ...

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value possible."""
        ...

    def spread(self) -> Spread:
        """The part of the variance of the seeds' mean that comes from the draw of rows."""
        ...

    def pooled(self) -> Sample:
        """The same with the seeds averaged: one seed."""
        ...

    def minus(self, other: Any) -> Sample:
        """This value minus another one measured on the same rows, seed by seed."""
        ...


@dataclass(frozen=True)
class RowScores:
    """A mean of rows: `scores` has shape (seeds, rows)."""

    scores: Scores
    bounds: tuple[float, float] = (0.0, 1.0)

    @property
    def per_seed(self) -> list[float]:
        return [average(row) for row in self.scores.tolist()]

    @property
    def rows(self) -> int:
        return int(self.scores.shape[1])

    def spread(self) -> Spread:
        return mean_spread(self.scores, self.bounds)

    def pooled(self) -> RowScores:
        return RowScores(self.scores.mean(axis=0)[None, :], self.bounds)

    def minus(self, other: RowScores) -> RowScores:
        return RowScores(self.scores - other.scores, _difference(self.bounds, other.bounds))

    def select(self, rows: NDArray[Any]) -> RowScores:
        """Some of the rows: positions or a mask."""
        return RowScores(self.scores[:, rows], self.bounds)


@dataclass(frozen=True)
class Replicates:
    """A statistic of rows: its value per seed, and `without` each group of rows, shape (seeds, groups): NaN where that
    leaves no row, or none that it is defined on."""

    per_seed: list[float]
    without: NDArray[np.float64]
    sizes: NDArray[np.int64]
    bounds: tuple[float, float]

    @property
    def rows(self) -> int:
        return int(self.sizes.sum())

    def spread(self) -> Spread:
        if len(self.sizes) < 2:
            return Spread(nan, 0)
        return delete_group(average(self.per_seed), self.without.mean(axis=0), self.sizes)

    def pooled(self) -> Replicates:
        return Replicates([average(self.per_seed)], self.without.mean(axis=0)[None, :], self.sizes, self.bounds)

    def minus(self, other: Replicates) -> Replicates:
        values = [a - b for a, b in zip(self.per_seed, other.per_seed, strict=True)]
        with np.errstate(invalid="ignore"):  # infinite on both sides: not defined
            without = self.without - other.without
        return Replicates(values, without, self.sizes, _difference(self.bounds, other.bounds))


def _difference(left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    return left[0] - right[1], left[1] - right[0]


def row_groups(row_ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The jackknife group of each row, shape (n,): dealt out in an order drawn by row id; sizes differ by one."""
    groups = np.empty(len(row_ids), np.int64)
    groups[shuffled("jackknife", row_ids)] = np.arange(len(row_ids)) % min(GROUPS, len(row_ids))
    return groups


def replicates(
    states: Sequence[Sequence[Any]],
    merge: Callable[[Any, Any], Any],
    compute: Callable[[Any], float],
    sizes: NDArray[np.int64],
    bounds: tuple[float, float],
) -> Replicates:
    """A statistic from its states, one per seed and group of rows: `states[seed][group]`, groups of `sizes` rows."""
    if len(sizes) < 2:  # a single row: nothing is left without it
        return Replicates([compute(state) for (state,) in states], np.full((len(states), 1), nan), sizes, bounds)
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
    return Replicates(values, np.array(without), sizes, bounds)


def finite(bounds: tuple[float, float]) -> bool:
    """Whether both ends of a scale are finite."""
    return isfinite(bounds[0]) and isfinite(bounds[1])
