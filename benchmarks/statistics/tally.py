"""Compact form of binary scores: the number of an entry's seeds that are right on each row.

A leaderboard with 1,000 entries on 10,000 rows with five seeds has 50 million scores. If they are 0 or 1, the
covariance of means only depends on the number of seeds that are right on each row, which is one byte per row.
Quantities that depend on the individual seeds (their values, the interaction of rows and seeds) are stored as numbers.
Every result of a `Tally` is bitwise identical to that of the `RowScores` from which it was made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .clusters import Clustering, Codes, choose_cluster_treatment, make_clustering
from .sample import RowScores, Sample, Scores, has_finite_ends
from .variance_estimate import VarianceEstimate, compute_average, estimate_counted_variance, estimate_row_variance

MOST_SEEDS = 15
"""The maximum number of seeds: beyond, a pair's table of (seeds + 1)^2 cells would not be smaller."""


@dataclass(frozen=True)
class Tally:
    """A mean over rows with scores 0 or 1. counts (rows,): the number of seeds that are right on each row; per_seed:
    each seed's value; met: the interaction variance of rows and seeds; key: a digest of the scores."""

    counts: NDArray[np.uint8]
    per_seed: list[float]
    interaction_variance: float
    key: bytes
    bounds: tuple[float, float] = (0.0, 1.0)
    clusters: Codes | None = None

    @property
    def seeds(self) -> int:
        return len(self.per_seed)

    @property
    def rows(self) -> int:
        return len(self.counts)

    @property
    def why(self) -> str:
        return "" if self.rows else "there are no rows"

    @property
    def clustering(self) -> Clustering:
        return make_clustering(self.clusters)

    @property
    def means(self) -> Scores:
        """The mean over seeds of each row, (rows,)."""
        return self.counts / self.seeds

    def spread(self) -> VarianceEstimate:
        return self._spread

    @cached_property
    def _spread(self) -> VarianceEstimate:
        if not has_independent_rows(self.clusters):
            return estimate_row_variance(self.means[None], self.bounds, self.clusters)
        times = np.bincount(self.counts, minlength=1)
        occurring = np.flatnonzero(times)
        return estimate_counted_variance((occurring / self.seeds).tolist(), times[occurring].tolist(), self.bounds)

    def shift(self) -> float:
        return (
            (sum(self.bounds) - 2 * compute_average(self.per_seed)) / (self.rows + 2)
            if has_finite_ends(self.bounds)
            else 0.0
        )

    def interaction(self) -> float:
        return self.interaction_variance

    def pooled(self) -> PooledTally:
        return PooledTally(self)

    def minus(self, other: Any) -> Sample:
        raise TypeError("a tally has no scores of single seeds: subtract `pooled()` samples instead")


class _LazySample(ABC):
    """A sample whose row scores are rarely needed and are computed on demand."""

    @abstractmethod
    def row_scores(self) -> RowScores:
        """Return the sample with its row scores."""

    @property
    def scores(self) -> Scores:
        return self.row_scores().scores

    @property
    def per_seed(self) -> list[float]:
        return self.row_scores().per_seed

    @property
    def rows(self) -> int:
        return self.row_scores().rows

    @property
    def why(self) -> str:
        return self.row_scores().why

    @property
    def bounds(self) -> tuple[float, float]:
        return self.row_scores().bounds

    @property
    def clustering(self) -> Clustering:
        return self.row_scores().clustering

    def spread(self) -> VarianceEstimate:
        return self.row_scores().spread()

    def shift(self) -> float:
        return self.row_scores().shift()

    def interaction(self) -> float:
        return 0.0

    def pooled(self) -> Sample:
        return self

    def minus(self, other: Any) -> Sample:
        return self.row_scores().minus(other.row_scores() if isinstance(other, _LazySample) else other)


class PooledTally(_LazySample):
    """A tally averaged over seeds, giving one seed."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    def row_scores(self) -> RowScores:
        return RowScores(self.tally.means[None], self.tally.bounds, self.tally.clusters)

    def minus(self, other: Any) -> Sample:
        is_countable = isinstance(other, PooledTally) and has_independent_rows(self.tally.clusters)
        return TallyDifference(self.tally, other.tally) if is_countable else super().minus(other)


class TallyDifference(_LazySample):
    """The difference of two tallies on the same rows, row by row."""

    def __init__(self, left: Tally, right: Tally) -> None:
        self.left, self.right = left, right

    @property
    def rows(self) -> int:
        return self.left.rows

    @property
    def clustering(self) -> Clustering:
        return self.left.clustering

    @property
    def bounds(self) -> tuple[float, float]:
        return self.left.bounds[0] - self.right.bounds[1], self.left.bounds[1] - self.right.bounds[0]

    def row_scores(self) -> RowScores:
        return RowScores((self.left.means - self.right.means)[None], self.bounds, self.left.clusters)

    def spread(self) -> VarianceEstimate:
        # Rows with the same pair of counts have the same difference, so it suffices to count the pairs.
        wide = self.right.seeds + 1
        narrow = np.uint8 if wide * (self.left.seeds + 1) <= 256 else np.int16
        times = np.bincount(self.left.counts * narrow(wide) + self.right.counts)
        occurring = np.flatnonzero(times)
        differences = (occurring // wide) / self.left.seeds - (occurring % wide) / self.right.seeds
        values: dict[float, int] = {}
        for value, count in zip(differences.tolist(), times[occurring].tolist(), strict=True):
            values[value] = values.get(value, 0) + count
        return estimate_counted_variance(list(values), list(values.values()), self.bounds)


def tally_sample(sample: Sample) -> Tally | None:
    """Make the tally of a sample; None unless it is a mean over rows with scores 0 or 1 and not too many seeds."""
    if isinstance(sample, Tally):
        return sample
    counts = count_right_seeds(sample)
    if counts is None or not isinstance(sample, RowScores):
        return None
    return Tally(
        counts, sample.per_seed, sample.interaction(), compute_score_key(sample), sample.bounds, sample.clusters
    )


def count_right_seeds(sample: Sample) -> NDArray[np.uint8] | None:
    """Count the seeds that are right on each row, (rows,); None if scores are not 0 or 1, or if there are too many
    seeds."""
    if isinstance(sample, Tally):
        return sample.counts
    if not isinstance(sample, RowScores) or not 0 < len(sample.scores) <= MOST_SEEDS:
        return None
    if not ((sample.scores == 0) | (sample.scores == 1)).all():
        return None
    counts: NDArray[np.uint8] = sample.scores.sum(axis=0).astype(np.uint8)
    return counts


def compute_score_key(sample: RowScores | Tally) -> bytes:
    """Compute a digest of the scores: which seed is right on which row."""
    if isinstance(sample, Tally):
        return sample.key
    return blake2b(np.ascontiguousarray(sample.scores, np.float64).tobytes(), digest_size=32).digest()


def estimate_count_covariance(entry_counts: Sequence[NDArray[np.uint8]], seeds: Sequence[int]) -> NDArray[np.float64]:
    """Estimate the covariance of the means of M entries over the same n independent rows, (M, M), as
    `estimate_mean_covariance`, but from integers: with k_i the counts of S_i seeds,

        (n sum k_i k_j - sum k_i sum k_j) / (S_i S_j n^2 (n - 1))

    rounded once. The result does not depend on the order of summation, and a matrix product in single precision is
    exact if no sum reaches 2^24."""
    n, most = len(entry_counts[0]), max(seeds)
    counts = np.empty((len(entry_counts), n), np.float32 if most * most * n < 1 << 24 else np.float64)
    for index, right_seeds in enumerate(entry_counts):
        counts[index] = right_seeds
    products = (counts @ counts.T).astype(np.float64)
    sums, over = counts.sum(axis=1, dtype=np.float64), np.array(seeds, np.float64) * n
    covariance: NDArray[np.float64] = (n * products - np.outer(sums, sums)) / (np.outer(over, over) * (n - 1))
    return covariance


def has_independent_rows(clusters: Codes | None) -> bool:
    """Return whether rows with these clusters are treated as independent."""
    return choose_cluster_treatment(clusters) in (None, "one")
