"""What many entries scored on the same rows: their values, how these vary together, and how surely that is known.

Rows are shared: a hard draw of rows is hard for everybody, and cancels in differences. So the row part of the
covariance is that of the M means over the same rows (clusters.py), or that of their jackknife's pseudo-values where the
metric is not a mean of rows (jackknife.py). Training seeds are each entry's own: their variance is added on the
diagonal, less the interaction of rows and seeds, which the row part has in it already (interval.py).

Few seeds of one entry say little of how much its training varies; those of all entries say more (`moderate_variances`).

Degrees of freedom of each difference are Satterthwaite's (Biometrics Bulletin 1946) over its row part and the seed
parts of both. They are taken with the seed variances as estimated, and again as if all entries' training were as noisy
as the median entry's; the fewer count. For where three seeds of both happen to agree, the estimates say that seeds
hardly matter and that thousands of rows are all there is to know, and it is just these pairs that look most different.

Of two entries that agree on nearly all rows a sample says little of how they differ. As in a paired difference
(interval.py), where the scale has two finite ends, a row at each is added to every difference: here as the variance
(width / rows)^2 of each entry, where clusters are random times the square of the design effect. Entries of the very
same scores share all of it: their difference has none.

Three seeds tell next to nothing of how much one entry's training varies, but the seeds of all entries of a table tell
how much training varies there, and how unlike entries are in that. So each variance is drawn towards the common one, by
as much as they are alike: with true variances scaled inverse chi-squared around v_0 with d_0 degrees of freedom, that
of an entry with d of its own becomes

    (d_0 v_0 + d v) / (d_0 + d)      with d_0 + d degrees of freedom

(Smyth, Statistical Applications in Genetics and Molecular Biology 2004; d_0 and v_0 from the mean and the variance of
the logarithms, the latter with two standard errors more). No variance is made smaller than it was measured: an entry
whose training is wilder than the others' is none of their kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from .clusters import choose_cluster_treatment, compute_degrees_of_freedom, estimate_mean_covariance
from .jackknife import compute_group_deviations
from .sample import Replicates, RowScores, Sample, has_finite_ends
from .streams import make_generator
from .student_t import compute_upper_tail
from .tally import Tally, compute_score_key, count_right_seeds, estimate_count_covariance, has_independent_rows
from .variance_estimate import VarianceEstimate, compute_average, estimate_seed_variance

Matrix = NDArray[np.float64]

BLOCK = 512
"""Draws at a time: for 100 entries they lie in a processor's cache."""

MANY = 256
"""From so many entries on draws are made in ways that cost less, and are others."""
PIECE = 128

_ROUNDING = 1e-12


@dataclass(frozen=True)
class JointCovariance:
    """values (M,), covariance (M, M), df (M, M): the degrees of freedom of each pair's difference, on the diagonal of
    each value by itself. All finite; df above 0."""

    values: Matrix
    covariance: Matrix
    df: Matrix

    def __post_init__(self) -> None:
        entries = len(self.values)
        if self.covariance.shape != (entries, entries) or self.df.shape != (entries, entries):
            raise ValueError(f"{entries} values need a covariance and df of shape ({entries}, {entries})")
        _refuse_undefined(self.values, self.covariance)

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def difference(self) -> Matrix:
        """values[i] - values[j], shape (M, M)."""
        return self.values[:, None] - self.values[None, :]

    @cached_property
    def variance(self) -> Matrix:
        """The variance of each difference, (M, M); exactly 0 where nothing but rounding is left."""
        variances = _compute_difference_variances(self.covariance)
        np.fill_diagonal(variances, 0.0)
        return variances

    @cached_property
    def se(self) -> Matrix:
        """The standard error of each difference, (M, M); 0 where it has none, as of copies of one entry."""
        errors: Matrix = np.sqrt(self.variance)
        return errors

    @cached_property
    def t(self) -> Matrix:
        """difference / se, (M, M): 0 where there is no difference, infinite where one has no noise at all."""
        statistics: Matrix = np.zeros_like(self.se)
        np.divide(self.difference, self.se, out=statistics, where=self.se > 0)
        largest = np.maximum(np.abs(self.values)[:, None], np.abs(self.values))
        certain = (self.se == 0) & (np.abs(self.difference) > _ROUNDING * largest)
        statistics[certain] = np.sign(self.difference[certain]) * inf
        return statistics

    def p(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """The two-sided t test's p of each pair (first[k], second[k]), unadjusted, same shape."""
        pairs = zip(np.abs(self.t[first, second]).tolist(), self.df[first, second].tolist(), strict=True)
        return np.array([min(2 * compute_upper_tail(t, df), 1.0) for t, df in pairs])

    @cached_property
    def root(self) -> Matrix:
        """The symmetric square root of the covariance. Unlike a triangular one it exists for singular matrices, and
        unlike eigenvectors it does not depend on their signs."""
        values, vectors = np.linalg.eigh((self.covariance + self.covariance.T) / 2)
        square_root: Matrix = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return square_root

    @cached_property
    def factor(self) -> Matrix:
        """A square root of the covariance to draw noise by. The symmetric one of 1,000 entries takes longer than all
        else: of many entries it is the triangular one where there is one."""
        if len(self) >= MANY:
            try:
                return np.linalg.cholesky((self.covariance + self.covariance.T) / 2).astype(np.float64, copy=False)
            except np.linalg.LinAlgError:  # as of more entries than rows
                pass
        return self.root

    @cached_property
    def _pieces(self) -> list[Matrix]:
        """The factor from top to bottom; of a triangular one a piece for every PIECE rows, without the zeros behind."""
        triangular = len(self) >= MANY and not np.triu(self.factor, 1).any()
        size = PIECE if triangular else len(self)
        ends = range(size, len(self) + size, size)
        return [np.ascontiguousarray(self.factor[end - size : end, :end]) for end in ends]

    def noise(self, draws: int, stream: str) -> Iterator[Matrix]:
        """Gaussian noise of this covariance around zero, in blocks of shape (M, up to BLOCK), `draws` in all."""
        source = make_generator(stream)
        for start in range(0, draws, BLOCK):
            normal = source.standard_normal((len(self), min(BLOCK, draws - start)))
            yield np.concatenate([piece @ normal[: piece.shape[1]] for piece in self._pieces])

    def select(self, entries: NDArray[np.int64]) -> JointCovariance:
        """Some of the entries."""
        square = np.ix_(entries, entries)
        return JointCovariance(self.values[entries], self.covariance[square], self.df[square])


def estimate_joint_covariance(samples: Sequence[Sample]) -> JointCovariance:
    """What M entries scored on the same rows, of which there are two or more, in the same order.

    All are means of rows (`RowScores`, with the same clusters), or all are no such means (`Replicates`, of the same
    groups). Entries of a single seed have no noise of training in their variance."""
    rows = [sample for sample in samples if isinstance(sample, RowScores | Tally)]
    groups = [sample for sample in samples if isinstance(sample, Replicates)]
    if not samples or len(samples) not in (len(rows), len(groups)):
        raise ValueError("a joint covariance needs one entry or more, all measured by the same metric")
    values = np.array([compute_average(sample.per_seed) for sample in samples])
    covariance, row_df, copies = _estimate_row_covariance(rows) if rows else _estimate_jackknife_covariance(groups)
    _refuse_undefined(values, covariance)
    training = _Training.of(samples)
    df = [_compute_df(covariance, row_df, noise, copies) for noise in (training, training.typical())]
    # Copies of an entry are trained once: their seeds' noise is the same noise.
    return JointCovariance(values, covariance + training.added * copies, np.minimum(*df))


def _refuse_undefined(*arrays: Matrix) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("a value or its variance is not defined: leave such entries out, and list them apart")


@dataclass(frozen=True)
class _Training:
    """Of each entry, (M,): the variance of its mean by how its seeds' means vary, moderated, the degrees of freedom of
    that, and the part of it that is the interaction of rows and seeds."""

    variance: Matrix
    df: Matrix
    interaction: Matrix

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> _Training:
        spreads = [estimate_seed_variance(sample.per_seed) or VarianceEstimate(0.0, 1) for sample in samples]
        interactions = [sample.interaction() for sample in samples]
        own = np.array([spread.variance for spread in spreads]), np.array([float(spread.df) for spread in spreads])
        return cls(*moderate_variances(*own), np.array(interactions))

    @property
    def added(self) -> Matrix:
        """What training adds to the variance of rows, in which the interaction is already."""
        return np.maximum(self.variance - self.interaction, 0.0)

    def typical(self) -> _Training:
        """As it would be, if every entry's training were as noisy as the median entry's.

        The median of a variance with k degrees of freedom is (1 - 2 / 9k)^3 of its mean (Wilson and Hilferty 1931)."""
        varies = self.variance > 0
        if not varies.any():
            return self
        runs = self.variance * (self.df + 1) / (1 - 2 / (9 * self.df)) ** 3
        return _Training(np.where(varies, np.median(runs[varies]) / (self.df + 1), 0.0), self.df, self.interaction)


def _compute_df(rows: Matrix, row_df: float, training: _Training, copies: NDArray[np.bool_]) -> Matrix:
    """Satterthwaite's degrees of freedom of every difference, and on the diagonal of every value: from the covariance
    (M, M) of the row parts, which has `row_df`, and the seed parts of those two that are not copies."""
    by_rows, once = _compute_difference_variances(rows), np.eye(len(rows), dtype=bool)
    first, second = once | ~copies, ~copies

    def both(parts: Matrix) -> Matrix:
        return np.where(first, parts[:, None], 0.0) + np.where(second, parts, 0.0)

    total, left = by_rows + both(training.variance), by_rows + both(training.added)
    safe = np.where(total > 0, total, 1.0)  # by shares of the total: squares of very small variances are not floats
    seeds = [
        np.where(chosen, part / safe, 0.0)
        for chosen, part in ((first, training.variance[:, None]), (second, training.variance))
    ]
    denominator = (by_rows / safe) ** 2 / row_df + seeds[0] ** 2 / training.df[:, None] + seeds[1] ** 2 / training.df
    return np.where(total > 0, (left / safe) ** 2 / np.where(denominator > 0, denominator, 1.0), row_df)


def _compute_difference_variances(covariance: Matrix) -> Matrix:
    """The variance of each difference, on the diagonal of each value; 0 where nothing but rounding is left."""
    own = np.diag(covariance)
    total = own[:, None] + own[None, :]
    left = total - covariance - covariance.T
    variances = np.where(left > _ROUNDING * total, left, 0.0)
    np.fill_diagonal(variances, own)
    return variances


def _estimate_row_covariance(samples: Sequence[RowScores | Tally]) -> tuple[Matrix, float, NDArray[np.bool_]]:
    first = samples[0]
    if any(sample.rows != first.rows or not _is_same_clusters(sample.clusters, first.clusters) for sample in samples):
        raise ValueError("entries that are ranked must be scored on the same rows, in the same clusters")
    counts = [right_counts for sample in samples if (right_counts := count_right_seeds(sample)) is not None]
    copies = _find_copies([compute_score_key(sample) for sample in samples])
    ends = np.array(
        [
            high - low if has_finite_ends((low, high)) else 0.0
            for low, high in (row_sample.bounds for row_sample in samples)
        ]
    )
    if len(counts) == len(samples) and has_independent_rows(first.clusters) and first.rows > 1:
        covariance, df = (
            estimate_count_covariance(counts, [len(row_sample.per_seed) for row_sample in samples]),
            first.rows - 1.0,
        )
    else:
        means = np.stack([sample.means for sample in samples])
        covariance, df = estimate_mean_covariance(means, first.clusters)
        ends = ends * _compute_design_effect(means, first.clusters)
    return covariance + (ends / first.rows) ** 2 * copies, df, copies


def _compute_design_effect(means: Matrix, clusters: NDArray[np.int64] | None) -> Matrix:
    """How many rows of each entry's scores (M, n), less what all entries have in common, say as much as one row would
    that is drawn independently, (M,): 1 or more."""
    if choose_cluster_treatment(clusters) != "random":
        return np.ones(len(means))
    deviations = means - means.mean(axis=0)
    clustered, plain = (
        np.diag(estimate_mean_covariance(deviations, clusters_or_none)[0]) for clusters_or_none in (clusters, None)
    )
    return np.maximum(clustered / np.where(plain > 0, plain, np.inf), 1.0)


def _is_same_clusters(left: NDArray[np.int64] | None, right: NDArray[np.int64] | None) -> bool:
    return left is right or (left is not None and right is not None and np.array_equal(left, right))


def _estimate_jackknife_covariance(samples: Sequence[Replicates]) -> tuple[Matrix, float, NDArray[np.bool_]]:
    """The covariance by the delete-a-group jackknife (jackknife.py)."""
    sizes = samples[0].sizes
    if len(sizes) < 2 or any(not np.array_equal(sample.sizes, sizes) for sample in samples):
        raise ValueError("entries that are ranked must be jackknifed over the same two or more groups of rows")
    values = np.array([compute_average(sample.per_seed) for sample in samples])
    rest = compute_group_deviations(values, np.stack([sample.without.mean(axis=0) for sample in samples]), sizes)
    copies = _find_copies([sample.without.tobytes() for sample in samples])
    ends = np.array([0.0 if sample.ends is None else sample.ends.variance() for sample in samples])
    return rest @ rest.T + ends * copies, compute_degrees_of_freedom(sizes), copies


def _find_copies(keys: Sequence[bytes]) -> NDArray[np.bool_]:
    """Which entries have the very same scores with the very same seeds, (M, M)."""
    first: dict[bytes, int] = {}
    kinds = np.array([first.setdefault(key, number) for number, key in enumerate(keys)])
    same: NDArray[np.bool_] = kinds[:, None] == kinds[None, :]
    return same


FEWEST = 4
"""Entries with seeds that it takes: fewer tell nothing of how unlike entries are."""

CAUTION = 2.0
"""Standard errors by which entries are taken as more unlike than they look: with none, some of 15 equal entries whose
training is very unlike differed significantly in 10 to 15 % of trials with three and two seeds."""

Array = NDArray[np.float64]


def moderate_variances(variance: Array, df: Array) -> tuple[Array, Array]:
    """The moderated variances of means over df + 1 seeds, (M,), and their degrees of freedom. A variance of 0 is that
    of training without any chance in it, or of a single seed, and stays."""
    varies = variance > 0
    if np.count_nonzero(varies) < FEWEST:
        return variance, df
    own, half = variance[varies], df[varies] / 2
    logs = np.log(own * (2 * half + 1)) - digamma(half) + np.log(half)
    unlike = float(logs.var(ddof=1)) * (1 + CAUTION * sqrt(2 / (len(own) - 1))) - float(trigamma(half).mean())
    most = float(df[varies].sum())  # all that is known of the common variance
    prior = min(2 * _invert_trigamma(unlike), most) if unlike > 0 else most
    half_prior = np.array([prior / 2])
    centre = float(digamma(half_prior)[0]) - log(prior / 2) if unlike > 0 else 0.0
    common = exp(float(logs.mean()) + centre)
    variances, known = variance.copy(), df.copy()
    shrunken = (prior * common / (2 * half + 1) + 2 * half * own) / (prior + 2 * half)
    variances[varies] = np.maximum(shrunken, own)
    known[varies] = prior + 2 * half
    return variances, known


def digamma(x: Array) -> Array:
    """The derivative of log gamma at x > 0 (Abramowitz and Stegun 6.3.5 and 6.3.18)."""
    value, x = np.zeros_like(x), x.copy()
    for _ in range(8):
        value -= np.where(x < 8, 1 / x, 0.0)
        x = np.where(x < 8, x + 1, x)
    square = 1 / x**2
    return value + np.log(x) - 1 / (2 * x) - square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))


def trigamma(x: Array) -> Array:
    """The second derivative of log gamma at x > 0 (Abramowitz and Stegun 6.4.6 and 6.4.12)."""
    value, x = np.zeros_like(x), x.copy()
    for _ in range(8):
        value += np.where(x < 8, 1 / x**2, 0.0)
        x = np.where(x < 8, x + 1, x)
    square = 1 / x**2
    return value + 1 / x + square / 2 + square / x * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30)))


def _invert_trigamma(value: float) -> float:
    """The x with trigamma(x) = value > 0, by bisection of its logarithm."""
    low, high = log(1e-6), log(1e12)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if trigamma(np.array([exp(middle)]))[0] > value else (low, middle)
    return exp(low)
