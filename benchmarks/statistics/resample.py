"""Ten thousand resamples of a million rows, in the time that it takes to count them.

A resample draws n rows with replacement. A mean of rows depends on the draw only by how often each distinct row of
scores came up, and these counts are Multinomial(n, counts / n): the very law of drawing rows one by one, at a cost of
resamples x distinct rows instead of resamples x n. Right or wrong of two models makes four distinct rows. A difference
needs the distinct differences only. Rows in clusters are resampled as whole clusters (Davison and Hinkley, Bootstrap
Methods and their Application, 1997, section 3.8), by the distinct pairs of a cluster's sum and size.

A mean needs no bootstrap for its interval (interval.py); it is for what is no mean, or to see the law of a difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .clusters import Codes
from .streams import generator

RESAMPLES = 10_000
MOST_CONTINUOUS = 2_000
"""Resamples of scores that (nearly) all differ: there is nothing to group, and each costs as many draws as rows."""

_STEPS = 100_000_000
_MEMORY = 4_000_000

Scores = NDArray[np.float64] | NDArray[np.bool_] | NDArray[np.uint8]


@dataclass(frozen=True)
class Cells:
    """Distinct rows of scores, values (K, columns), and how often each occurs, counts (K,)."""

    values: NDArray[np.float64]
    counts: NDArray[np.int64]

    @property
    def rows(self) -> int:
        return int(self.counts.sum())


def cells(*columns: Scores) -> Cells:
    """The distinct rows of some columns of the same n rows, (n,) each, and their counts.

    Columns of right and wrong alone (booleans, or numbers all 0 or 1) are counted without sorting them."""
    right = [_binary(column) for column in columns]
    known = [one for one in right if one is not None]
    if len(known) == len(columns) and len(columns) <= 2:
        return _binary_cells(known)
    distinct, codes = [], np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, code = np.unique(np.asarray(column, np.float64), return_inverse=True)
        distinct.append(values)
        codes = codes * len(values) + code
    codes, counts = np.unique(codes, return_counts=True)
    places = np.unravel_index(codes, [len(values) for values in distinct])
    return Cells(np.stack([values[at] for values, at in zip(distinct, places, strict=True)], axis=1), counts)


def _binary(column: Scores) -> NDArray[np.bool_] | None:
    if column.dtype == np.bool_:
        return column  # type: ignore[return-value]
    ones: NDArray[np.bool_] = column == 1
    return ones if np.count_nonzero(column) == np.count_nonzero(ones) else None


def _binary_cells(columns: list[NDArray[np.bool_]]) -> Cells:
    """Counting ones is many times as fast as any table: three counts give all four cells."""
    n, ones = len(columns[0]), [np.count_nonzero(column) for column in columns]
    if len(columns) == 1:
        values, counts = [[0.0], [1.0]], [n - ones[0], ones[0]]
    else:
        both = np.count_nonzero(columns[0] & columns[1])
        values = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
        counts = [n - ones[0] - ones[1] + both, ones[1] - both, ones[0] - both, both]
    there = np.array(counts) > 0
    return Cells(np.array(values)[there], np.array(counts, np.int64)[there])


def resampled_sums(found: Cells, resamples: int, stream: str) -> NDArray[np.float64]:
    """The column sums of each resample of all rows of `found`, (resamples, columns).

    Raises ValueError for more than MOST_CONTINUOUS resamples of rows that can hardly be grouped."""
    if resamples * len(found.counts) > _STEPS and resamples > MOST_CONTINUOUS:
        raise ValueError(
            f"{len(found.counts)} distinct scores cannot be grouped: take {MOST_CONTINUOUS} resamples or fewer, "
            "resample clusters, or take the analytic interval"
        )
    source, n, shares = generator(stream), found.rows, found.counts / found.rows
    step = max(_MEMORY // len(found.counts), 1)
    blocks = [min(step, resamples - start) for start in range(0, resamples, step)]
    return np.concatenate([source.multinomial(n, shares, block) @ found.values for block in blocks])


def resampled_mean(
    scores: Scores, clusters: Codes | None = None, resamples: int = RESAMPLES, stream: str = "bootstrap"
) -> NDArray[np.float64]:
    """The mean of `scores` (n,) in each resample of its rows, or of its `clusters` (n,), shape (resamples,)."""
    if clusters is None:
        return resampled_sums(cells(scores), resamples, stream)[:, 0] / len(scores)
    sums = np.bincount(clusters, scores).astype(np.float64)
    sizes = np.bincount(clusters)
    there = sizes > 0
    drawn = resampled_sums(cells(sums[there], sizes[there].astype(np.float64)), resamples, stream)
    means: NDArray[np.float64] = drawn[:, 0] / drawn[:, 1]
    return means


def resampled_difference(
    left: Scores,
    right: Scores,
    clusters: Codes | None = None,
    resamples: int = RESAMPLES,
    stream: str = "bootstrap",
) -> NDArray[np.float64]:
    """mean(left) - mean(right) in each resample of the same rows, (n,) each, or of their clusters; (resamples,)."""
    if clusters is None and (found := _signs(left, right)) is not None:
        return resampled_sums(found, resamples, stream)[:, 0] / len(left)
    difference = np.subtract(left, right, dtype=np.float64)
    return resampled_mean(difference, clusters, resamples, stream)


def _signs(left: Scores, right: Scores) -> Cells | None:
    """The cells of the difference of right and wrong answers: -1, 0 and 1."""
    a, b = _binary(left), _binary(right)
    if a is None or b is None:
        return None
    both = cells(a, b)
    signs = both.values[:, 0] - both.values[:, 1]
    counts = np.array([both.counts[signs == sign].sum() for sign in (-1, 0, 1)])
    return Cells(np.array([[-1.0], [0.0], [1.0]])[counts > 0], counts[counts > 0])
