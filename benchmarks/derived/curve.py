"""The curve of scores over severity, for all rows and seeds or some of them, and its non-increasing fit."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..statistics.sample import Scores


@dataclass(frozen=True)
class Curve:
    """The mean `score` of `rows` rows at each `severity`, ascending, all of shape (K,); and the in-distribution
    `level`, the mean score of `level_rows` rows (NaN if there are none)."""

    severity: NDArray[np.float64]
    score: NDArray[np.float64]
    rows: NDArray[np.int64]
    level: float
    level_rows: int


@dataclass(frozen=True)
class Tally:
    """Sums over rows, sufficient for the curve of any seeds or any groups of rows without another pass over the rows.

    severity: (K,), ascending; rows: (K, groups), how many; sums: (seeds, K, groups), of their scores;
    level_rows: (groups,), how many in-distribution rows; level_sums: (seeds, groups), of their scores.
    """

    severity: NDArray[np.float64]
    rows: NDArray[np.int64]
    sums: NDArray[np.float64]
    level_rows: NDArray[np.int64]
    level_sums: NDArray[np.float64]

    @property
    def seeds(self) -> int:
        return len(self.sums)

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Shape (groups,)."""
        sizes: NDArray[np.int64] = self.rows.sum(axis=0)
        return sizes

    def full_curve(self) -> Curve:
        """Return the curve of all rows and seeds."""
        return self._curve(slice(None), slice(None))

    def of_groups(self, groups: NDArray[np.bool_]) -> Curve:
        """Return the curve of the groups of rows selected by the mask, shape (groups,)."""
        return self._curve(slice(None), groups)

    def of_seeds(self, seeds: NDArray[np.bool_]) -> Curve:
        """Return the curve of the seeds selected by the mask, shape (seeds,)."""
        return self._curve(seeds, slice(None))

    def _curve(self, seeds: NDArray[np.bool_] | slice, groups: NDArray[np.bool_] | slice) -> Curve:
        sums, level_sums = self.sums[seeds][:, :, groups], self.level_sums[seeds][:, groups]
        rows, level_rows = self.rows[:, groups].sum(axis=1), int(self.level_rows[groups].sum())
        occupied = rows > 0
        score = sums.sum(axis=(0, 2))[occupied] / (rows[occupied] * len(sums))
        level = float(level_sums.sum()) / (level_rows * len(sums)) if level_rows else nan
        return Curve(self.severity[occupied], score, rows[occupied], level, level_rows)


def tally_curve(
    severity: NDArray[Any], scores: Scores, inside: NDArray[np.bool_], groups: NDArray[np.int64], most: int
) -> Tally:
    """Sum over n rows: severity (n,), scores (seeds, n), inside (n,): which rows are in-distribution, groups (n,):
    integers; at no more than `most` severities.

    If there are more distinct severities, neighbours are merged into bins with about equal numbers of rows, each at the
    mean severity of its rows."""
    points, point = _join_severities(severity, most)
    names, group = np.unique(groups, return_inverse=True)
    shape = (len(points), len(names))
    cell = point * len(names) + group
    return Tally(
        points,
        np.bincount(cell, minlength=points.size * names.size).reshape(shape),
        np.stack([np.bincount(cell, row, points.size * names.size).reshape(shape) for row in scores]),
        np.bincount(group[inside], minlength=len(names)),
        np.stack([np.bincount(group[inside], row[inside], len(names)) for row in scores]),
    )


def _join_severities(severity: NDArray[Any], most: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the severities of a curve, ascending, and each row's index among them."""
    values, position, counts = np.unique(severity.astype(np.float64), return_inverse=True, return_counts=True)
    if len(values) <= most:
        return values, position
    before = np.cumsum(counts) - counts
    _, joined = np.unique(before * most // len(severity), return_inverse=True)
    means = np.bincount(joined, values * counts) / np.bincount(joined, counts)
    return means, joined[position]


def fit_isotonic(score: NDArray[np.float64], rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Fit the non-increasing curve nearest to `score` in least squares weighted by `rows`, and return it with the
    number of rows that each point's value is the mean of; all of shape (K,).

    Pool-adjacent-violators algorithm (Barlow, Bartholomew, Bremner and Brunk, Statistical Inference under Order
    Restrictions, 1972)."""
    pools: list[tuple[float, int, int]] = []
    for value, weight in zip(score.tolist(), rows.tolist(), strict=True):
        length = 1
        while pools and pools[-1][0] <= value:
            above, pooled_weight, longer = pools.pop()
            value = (above * pooled_weight + value * weight) / (pooled_weight + weight)
            weight, length = weight + pooled_weight, length + longer
        pools.append((value, weight, length))
    values, weights, lengths = zip(*pools, strict=True)
    return np.repeat(np.array(values), lengths), np.repeat(np.array(weights), lengths)
