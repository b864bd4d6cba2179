"""Joint covariance of the scores of many entries on the same rows, with degrees of freedom.

Rows are shared: a difficult sample of rows affects all entries and cancels in differences. The row component of the
covariance is therefore that of the M means over the same rows (clusters.py), or that of their jackknife pseudo-values
if the metric is not a mean over rows (variance_estimate.py). Training seeds are independent between entries: their
variance is added on the diagonal, minus the interaction of rows and seeds, which the row component already includes
(interval.py).

Few seeds of one entry give an imprecise estimate of its training noise; seed variances are therefore moderated by those
of all entries (`moderate_variances`, below).

The degrees of freedom of each difference are Satterthwaite's (Biometrics Bulletin 1946) over its row component and the
seed components of both entries. They are computed with the estimated seed variances, and again as if all entries had
the training noise of the median entry; the smaller value is used. Otherwise, if three seeds of both entries happen to
agree, the seed variance would appear negligible and the degrees of freedom would be those of thousands of rows, just
for the pairs that look most different.

For two entries that agree on nearly all rows, the sample variance of their difference is unreliable. As in a paired
difference (interval.py), if the scale has two finite ends, a row at each end is added to every difference: here as the
variance (width / rows)^2 of each entry, multiplied by the square of the design effect if clusters are random. Entries
with identical scores share this variance, so that their difference has none.

Three seeds hardly determine the training noise of one entry, but the seeds of all entries determine the typical
training noise and its variation between entries. Each variance is therefore shrunk towards the common one, the more so
the more similar the variances are: with true variances distributed as scaled inverse chi-squared around v_0 with d_0
degrees of freedom, the variance of an entry with d degrees of freedom becomes

    (d_0 v_0 + d v) / (d_0 + d)      with d_0 + d degrees of freedom

(Smyth, Statistical Applications in Genetics and Molecular Biology 2004; d_0 and v_0 from the mean and the variance of
the logarithms, with two standard errors added to the latter). No variance is reduced below its estimate, since the
training of an entry may be noisier than that of all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from .clusters import Codes, compute_degrees_of_freedom, estimate_mean_covariance, make_clustering
from .sample import Replicates, RowScores, Sample
from .variance_estimate import (
    VarianceEstimate,
    compute_average,
    compute_group_deviations,
    estimate_seed_variance,
    has_finite_ends,
    make_generator,
)

Matrix = NDArray[np.float64]
"""A matrix or a vector."""

DRAWS = 9_999
"""The number of Gaussian draws: a tail probability of 5 % has a relative Monte Carlo error of about 4 %."""
BLOCK = 512
"""Draws per block: for 100 entries they fit in the processor's cache."""

_ROUNDING = 1e-12


@dataclass(frozen=True)
class JointCovariance:
    """values (M,), covariance (M, M), df (M, M): the degrees of freedom of each pair's difference, and on the diagonal
    of each value. All finite; df above 0."""

    values: Matrix
    covariance: Matrix
    df: Matrix

    def __post_init__(self) -> None:
        _refuse_undefined(self.values, self.covariance)

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def difference(self) -> Matrix:
        """values[i] - values[j], shape (M, M)."""
        return self.values[:, None] - self.values[None, :]

    @cached_property
    def variance(self) -> Matrix:
        """The variance of each difference, (M, M); exactly 0 if only rounding error is left."""
        variances = _compute_difference_variances(self.covariance)
        np.fill_diagonal(variances, 0.0)
        return variances

    @cached_property
    def se(self) -> Matrix:
        """The standard error of each difference, (M, M); 0 if it has none, as between copies of one entry."""
        errors: Matrix = np.sqrt(self.variance)
        return errors

    @cached_property
    def t(self) -> Matrix:
        """difference / se, (M, M): 0 for a difference of 0, infinite for a non-zero difference without noise."""
        statistics: Matrix = np.zeros_like(self.se)
        np.divide(self.difference, self.se, out=statistics, where=self.se > 0)
        largest = np.maximum(np.abs(self.values)[:, None], np.abs(self.values))
        certain = (self.se == 0) & (np.abs(self.difference) > _ROUNDING * largest)
        statistics[certain] = np.sign(self.difference[certain]) * inf
        return statistics

    @cached_property
    def root(self) -> Matrix:
        """The symmetric square root of the covariance. Unlike a Cholesky factor it exists for singular matrices, and
        unlike eigenvectors it is independent of signs."""
        values, vectors = np.linalg.eigh((self.covariance + self.covariance.T) / 2)
        square_root: Matrix = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return square_root

    def noise(self, stream: str) -> Iterator[Matrix]:
        """Draw zero-mean Gaussian noise with this covariance in blocks of shape (M, up to BLOCK), DRAWS in total."""
        source = make_generator(stream)
        for start in range(0, DRAWS, BLOCK):
            yield self.root @ source.standard_normal((len(self), min(BLOCK, DRAWS - start)))

    def select(self, entries: NDArray[np.int64]) -> JointCovariance:
        """Return the joint covariance of some of the entries."""
        square = np.ix_(entries, entries)
        return JointCovariance(self.values[entries], self.covariance[square], self.df[square])


def estimate_joint_covariance(samples: Sequence[Sample]) -> JointCovariance:
    """Estimate the joint covariance of M entries on the same rows, of which there are at least two, in the same order.

    Either all are means over rows (`RowScores`, with the same clusters), or none is (`Replicates`, with the same
    groups). The variance of entries with a single seed does not include training noise."""
    rows = [sample for sample in samples if isinstance(sample, RowScores)]
    groups = [sample for sample in samples if isinstance(sample, Replicates)]
    if not samples or len(samples) not in (len(rows), len(groups)):
        raise ValueError("a joint covariance requires at least one entry, and the same metric for all entries")
    values = np.array([compute_average(sample.per_seed) for sample in samples])
    covariance, row_df, copies = _estimate_row_covariance(rows) if rows else _estimate_jackknife_covariance(groups)
    _refuse_undefined(values, covariance)
    training = _TrainingNoise.of(samples)
    df = [_compute_df(covariance, row_df, noise, copies) for noise in (training, training.typical())]
    # Copies of an entry were trained once: their seed noise is identical.
    return JointCovariance(values, covariance + training.added * copies, np.minimum(*df))


def _refuse_undefined(*arrays: Matrix) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("a value or its variance is not defined: exclude such entries and list them separately")


@dataclass(frozen=True)
class _TrainingNoise:
    """For each entry, (M,): the moderated variance of its mean due to training seeds, its degrees of freedom, and the
    part of it that is the interaction of rows and seeds."""

    variance: Matrix
    df: Matrix
    interaction: Matrix

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> _TrainingNoise:
        spreads = [estimate_seed_variance(sample.per_seed) or VarianceEstimate(0.0, 1) for sample in samples]
        interactions = [sample.interaction() for sample in samples]
        own = np.array([spread.variance for spread in spreads]), np.array([float(spread.df) for spread in spreads])
        return cls(*moderate_variances(*own), np.array(interactions))

    @property
    def added(self) -> Matrix:
        """The variance that training adds to the row component, which already includes the interaction."""
        return np.maximum(self.variance - self.interaction, 0.0)

    def typical(self) -> _TrainingNoise:
        """Return the variances as if every entry had the training noise of the median entry.

        The median of a variance with k degrees of freedom is (1 - 2 / 9k)^3 times its mean (Wilson and Hilferty
        1931)."""
        varies = self.variance > 0
        if not varies.any():
            return self
        runs = self.variance * (self.df + 1) / (1 - 2 / (9 * self.df)) ** 3
        return _TrainingNoise(np.where(varies, np.median(runs[varies]) / (self.df + 1), 0.0), self.df, self.interaction)


def _compute_df(rows: Matrix, row_df: float, training: _TrainingNoise, copies: NDArray[np.bool_]) -> Matrix:
    """Compute Satterthwaite's degrees of freedom of every difference, and on the diagonal of every value, from the
    covariance (M, M) of the row components, with `row_df`, and the seed components of pairs that are not copies."""
    by_rows, once = _compute_difference_variances(rows), np.eye(len(rows), dtype=bool)
    first, second = once | ~copies, ~copies

    def both(parts: Matrix) -> Matrix:
        return np.where(first, parts[:, None], 0.0) + np.where(second, parts, 0.0)

    total, left = by_rows + both(training.variance), by_rows + both(training.added)
    safe = np.where(total > 0, total, 1.0)  # shares of the total, as squares of very small variances would underflow
    seeds = [
        np.where(chosen, part / safe, 0.0)
        for chosen, part in ((first, training.variance[:, None]), (second, training.variance))
    ]
    denominator = (by_rows / safe) ** 2 / row_df + seeds[0] ** 2 / training.df[:, None] + seeds[1] ** 2 / training.df
    return np.where(total > 0, (left / safe) ** 2 / np.where(denominator > 0, denominator, 1.0), row_df)


def _compute_difference_variances(covariance: Matrix) -> Matrix:
    """Compute the variance of each difference, and on the diagonal of each value; 0 if only rounding error is left."""
    own = np.diag(covariance)
    total = own[:, None] + own[None, :]
    left = total - covariance - covariance.T
    variances = np.where(left > _ROUNDING * total, left, 0.0)
    np.fill_diagonal(variances, own)
    return variances


def _estimate_row_covariance(samples: Sequence[RowScores]) -> tuple[Matrix, float, NDArray[np.bool_]]:
    first = samples[0]
    if any(sample.rows != first.rows or not _is_same_clusters(sample.clusters, first.clusters) for sample in samples):
        raise ValueError("ranked entries must be scored on the same rows with the same clusters")
    copies = _find_copies([sample.scores.tobytes() for sample in samples])
    ends = np.array([high - low if has_finite_ends((low, high)) else 0.0 for low, high in (s.bounds for s in samples)])
    are_independent = make_clustering(first.clusters).treated in (None, "one") and first.rows > 1
    if are_independent and all(((sample.scores == 0) | (sample.scores == 1)).all() for sample in samples):
        counts = np.stack([sample.scores.sum(axis=0) for sample in samples])
        covariance, df = estimate_count_covariance(counts, [len(sample.scores) for sample in samples]), first.rows - 1.0
    else:
        means = np.stack([sample.scores.mean(axis=0) for sample in samples])
        covariance, df = estimate_mean_covariance(means, first.clusters)
        ends = ends * _compute_design_effect(means, first.clusters)
    return covariance + (ends / first.rows) ** 2 * copies, df, copies


def estimate_count_covariance(counts: Matrix, seeds: Sequence[int]) -> Matrix:
    """Estimate the covariance of the means of M entries over the same n independent rows, (M, M), as
    `estimate_mean_covariance`, but from integers: with `counts` k_i (M, n) of the S_i `seeds` that are right on a row,

        (n sum k_i k_j - sum k_i sum k_j) / (S_i S_j n^2 (n - 1))

    rounded once, so that the result does not depend on the order of rows and entries."""
    n = counts.shape[1]
    sums, over = counts.sum(axis=1), np.array(seeds, np.float64) * n
    covariance: Matrix = (n * (counts @ counts.T) - np.outer(sums, sums)) / (np.outer(over, over) * (n - 1))
    return covariance


def _compute_design_effect(means: Matrix, clusters: Codes | None) -> Matrix:
    """Compute the design effect of each entry's scores (M, n) after subtracting the mean over entries, (M,): the number
    of rows that are equivalent to one independent row, at least 1."""
    if make_clustering(clusters).treated != "random":
        return np.ones(len(means))
    deviations = means - means.mean(axis=0)
    clustered, plain = (
        np.diag(estimate_mean_covariance(deviations, clusters_or_none)[0]) for clusters_or_none in (clusters, None)
    )
    return np.maximum(clustered / np.where(plain > 0, plain, np.inf), 1.0)


def _is_same_clusters(left: Codes | None, right: Codes | None) -> bool:
    return left is right or (left is not None and right is not None and np.array_equal(left, right))


def _estimate_jackknife_covariance(samples: Sequence[Replicates]) -> tuple[Matrix, float, NDArray[np.bool_]]:
    """Estimate the covariance by the delete-a-group jackknife (variance_estimate.py)."""
    sizes = samples[0].sizes
    if len(sizes) < 2 or any(not np.array_equal(sample.sizes, sizes) for sample in samples):
        raise ValueError("ranked entries must have the same jackknife groups of rows, at least two")
    values = np.array([compute_average(sample.per_seed) for sample in samples])
    rest = compute_group_deviations(values, np.stack([sample.without.mean(axis=0) for sample in samples]), sizes)
    copies = _find_copies([sample.without.tobytes() for sample in samples])
    ends = np.array([sample.end_variance for sample in samples])
    return rest @ rest.T + ends * copies, compute_degrees_of_freedom(sizes), copies


def _find_copies(keys: Sequence[bytes]) -> NDArray[np.bool_]:
    """Return which entries have identical scores with identical seeds, (M, M)."""
    first: dict[bytes, int] = {}
    kinds = np.array([first.setdefault(key, number) for number, key in enumerate(keys)])
    same: NDArray[np.bool_] = kinds[:, None] == kinds[None, :]
    return same


FEWEST = 4
"""The minimum number of entries with several seeds: fewer do not determine the variation between entries."""

CAUTION = 2.0
"""Standard errors that are added to the estimated variation between entries: without them, some of 15 equal entries
with very different training noise differed significantly in 10 to 15 % of trials with three and two seeds."""


def moderate_variances(variance: Matrix, df: Matrix) -> tuple[Matrix, Matrix]:
    """Compute the moderated variances of means over df + 1 seeds, (M,), and their degrees of freedom. A variance of 0,
    for deterministic training or a single seed, is unchanged."""
    varies = variance > 0
    if np.count_nonzero(varies) < FEWEST:
        return variance, df
    from scipy.special import digamma, polygamma

    own, half = variance[varies], df[varies] / 2
    logs = np.log(own * (2 * half + 1)) - digamma(half) + np.log(half)
    unlike = float(logs.var(ddof=1)) * (1 + CAUTION * sqrt(2 / (len(own) - 1))) - float(polygamma(1, half).mean())
    most = float(df[varies].sum())  # the degrees of freedom of the common variance
    prior = min(2 * _invert_trigamma(unlike), most) if unlike > 0 else most
    centre = float(digamma(prior / 2)) - log(prior / 2) if unlike > 0 else 0.0
    common = exp(float(logs.mean()) + centre)
    variances, known = variance.copy(), df.copy()
    shrunken = (prior * common / (2 * half + 1) + 2 * half * own) / (prior + 2 * half)
    variances[varies] = np.maximum(shrunken, own)
    known[varies] = prior + 2 * half
    return variances, known


def _invert_trigamma(value: float) -> float:
    """Find x with trigamma(x) = value > 0, by bisection of its logarithm."""
    from scipy.special import polygamma

    low, high = log(1e-6), log(1e12)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if polygamma(1, exp(middle)) > value else (low, middle)
    return exp(low)
