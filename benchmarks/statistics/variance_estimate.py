"""Variance estimates of statistics over rows and seeds, with their degrees of freedom, and the t distribution.

Jackknife. The variance of a statistic that is not a mean over rows: with m_j of n rows in group j, h_j = n / m_j, the
statistic t on all rows and t_j on all rows except group j,

    p_j = h_j t - (h_j - 1) t_j      centre = sum_j p_j / h_j

the pseudo-values p_j (Busing, Meijer and van der Leeden, Statistics and Computing 1999) correspond to the groups' means
for a mean over rows. Their variance around the centre is estimated as for a mean over clusters (clusters.py,
`compute_robust_terms`), so groups may have any size and may be the clusters of the rows; for a mean over rows, the
result is the same. For equal groups it is sum_j (p_j - centre)^2 / (G (G - 1)), with G - 1 degrees of freedom (Kott,
Journal of Official Statistics 2001). Leaving out one training seed at a time is the same with groups of one.

Balanced half-samples. Leaving out a few rows at a time changes a non-smooth statistic, such as the point where a curve
crosses a level, too rarely to estimate its variance; leaving out half of them does not have this problem. With t the
statistic on all rows and t_r that on the r-th half, a share f_r of them,

    variance = mean over r of f_r / (1 - f_r) (t_r - t)^2

(the delete-d jackknife: Shao and Wu, Annals of Statistics 1989). Halves consist of whole groups of rows, balanced so
that for a mean this is the variance from the groups' means (McCarthy, Review of the International Statistical Institute
1969).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, inf, isfinite, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from ...core.draws import derive_key
from .clusters import (
    Codes,
    compute_degrees_of_freedom,
    compute_robust_terms,
    estimate_mean_covariance,
    make_clustering,
)

LEVEL = 0.95


@dataclass(frozen=True)
class VarianceEstimate:
    """A variance of a mean and its degrees of freedom."""

    variance: float
    df: float


def compute_average(values: Sequence[float]) -> float:
    """Compute the mean, exactly rounded; NaN if one of the values, or their sum, is not finite."""
    try:
        total = fsum(values)
    except (OverflowError, ValueError):  # overflow, or infinities of both signs
        return nan
    return total / len(values) if isfinite(total) else nan


def has_finite_ends(bounds: tuple[float, float]) -> bool:
    """Return whether both ends of a scale are finite."""
    return isfinite(bounds[0]) and isfinite(bounds[1])


def estimate_row_variance(
    scores: NDArray[np.float64], ends: tuple[float, float] = (0.0, 1.0), clusters: Codes | None = None
) -> VarianceEstimate:
    """Estimate the variance component of a mean that comes from the sampling of rows, optionally in `clusters`
    (clusters.py); `scores` has shape (seeds, rows), `clusters` (rows,).

    A mean at the end of its scale has no sample variance, but is still uncertain: if the scale has two finite `ends`,
    they are added as rows (as Agresti and Coull 1998 do with two of each)."""
    seeds = scores.shape[0]
    if make_clustering(clusters).treated in ("random", "fixed"):
        given = ends if has_finite_ends(ends) else None
        covariance, df = estimate_mean_covariance(scores.sum(axis=0, keepdims=True) / seeds, clusters, given)
        return VarianceEstimate(float(covariance[0, 0]), df)
    # With few distinct row means (k of S seeds right), sum over them exactly, so that the order has no effect.
    sums, counts = np.unique(scores.sum(axis=0), return_counts=True)
    means = (sums / seeds).tolist()
    tally = [*zip(means, counts.tolist(), strict=True), *([(end, 1) for end in ends] if has_finite_ends(ends) else [])]
    n = sum(count for _, count in tally)
    if n < 2 or not all(map(isfinite, means)):
        return VarianceEstimate(nan, 0)
    centre = fsum(value * count for value, count in tally) / n
    return VarianceEstimate(fsum(count * (value - centre) ** 2 for value, count in tally) / (n - 1) / n, n - 1)


def estimate_seed_variance(per_seed: Sequence[float]) -> VarianceEstimate | None:
    """Estimate the variance component of training seeds; None for a single seed."""
    seeds, mean = len(per_seed), compute_average(per_seed)
    if seeds < 2:
        return None
    try:
        variance = fsum((value - mean) ** 2 for value in per_seed) / (seeds - 1)
    except OverflowError:
        variance = inf
    return VarianceEstimate(variance / seeds, seeds - 1)


def sum_variances(spreads: Sequence[VarianceEstimate]) -> VarianceEstimate:
    """Sum independent variances, with Satterthwaite's degrees of freedom (Biometrics Bulletin 1946); if all are zero,
    the minimum of their degrees of freedom."""
    parts = [spread for spread in spreads if spread.variance > 0]
    total = fsum(spread.variance for spread in parts)
    if not parts or not isfinite(total):
        return VarianceEstimate(total, min(spread.df for spread in spreads))
    # Uses shares of the total, as squares of very large or very small variances would overflow or underflow.
    return VarianceEstimate(total, 1 / fsum((spread.variance / total) ** 2 / spread.df for spread in parts))


def add_variances(parts: Iterable[VarianceEstimate]) -> VarianceEstimate:
    """Add the variances of independent parts; the degrees of freedom are infinite if no part varies."""
    parts = list(parts)
    return sum_variances(parts) if any(part.variance != 0 for part in parts) else VarianceEstimate(0.0, inf)


def subtract_interaction(rows: VarianceEstimate, interaction: float) -> VarianceEstimate:
    """Subtract from a row variance the interaction of rows and seeds, which the variance of the seeds' means already
    includes: what is left is shared by all seeds, evaluated on the same rows (two-way clustering: Cameron, Gelbach and
    Miller, Journal of Business & Economic Statistics 2011). Never less than 0; NaN stays NaN."""
    return VarianceEstimate(max(rows.variance - interaction, 0.0), rows.df) if isfinite(rows.variance) else rows


def estimate_jackknife_variance(
    value: float, without: NDArray[np.float64], sizes: NDArray[np.int64]
) -> VarianceEstimate:
    """Estimate the variance of `value` from its values `without` each group, shape (G,), of `sizes` rows (or seeds)
    each.

    NaN if any of them is NaN. At least two groups are required, and none may be empty."""
    with np.errstate(over="ignore", invalid="ignore"):  # values too large to square give no finite variance
        deviations = compute_group_deviations(np.array([value]), without[None], sizes)
        return VarianceEstimate(float((deviations @ deviations.T)[0, 0]), compute_degrees_of_freedom(sizes))


def compute_group_deviations(
    values: NDArray[np.float64], without: NDArray[np.float64], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Compute the contribution of each group to M values (M,), shape (M, G), from their values `without` each group (M,
    G); the covariance of the values is the product of the result with its transpose."""
    times = sizes.sum() / sizes
    pseudo = times * values[:, None] - (times - 1) * without
    return compute_robust_terms(pseudo - (pseudo / times).sum(axis=1, keepdims=True), sizes)


def estimate_end_variance(
    values: NDArray[np.float64] | float, rows: NDArray[np.float64] | float, weights: NDArray[np.float64] | float = 1.0
) -> VarianceEstimate:
    """Estimate the variance that two rows at the ends of the scale [0, 1] add to sum(weights * values), for `values`
    that are independent means of `rows` rows each: a statistic that no group changes is still uncertain."""
    values, rows = np.asarray(values), np.asarray(rows)
    variance = np.sum((weights * np.hypot(values, 1 - values) / rows) ** 2)
    return VarianceEstimate(float(variance), float(np.sum(rows)))


Halves = NDArray[np.bool_]
"""The groups in each half, shape (halves, groups)."""


def make_balanced_halves(groups: int) -> Halves:
    """Make balanced halves of at least two groups, each with its complement.

    They are the rows of Sylvester's Hadamard matrix of the largest order that is at most `groups`, and their negatives.
    Groups beyond that order are assigned with the first groups."""
    signs = np.ones((1, 1), np.int8)
    while 2 * len(signs) <= groups:
        signs = np.block([[signs, signs], [signs, -signs]])
    half = signs[1:, np.arange(groups) % len(signs)] > 0
    return np.concatenate([half, ~half])


def estimate_half_sample_variance(
    value: float, on_halves: NDArray[np.float64], halves: Halves, sizes: NDArray[np.int64]
) -> VarianceEstimate:
    """Estimate the variance of `value` from its values `on_halves`, shape (halves,), for groups of `sizes` rows each.

    The degrees of freedom are half the number of halves, since a half and its complement are equivalent for a mean. NaN
    if any value is; no group may be empty."""
    share = halves @ sizes / sizes.sum()
    return VarianceEstimate(float(np.mean(share / (1 - share) * (on_halves - value) ** 2)), len(halves) // 2)


def compute_two_sided_p(t: float, df: float) -> float:
    """Compute P(|T| > t) of Student's t distribution, for t >= 0."""
    from scipy.special import stdtr

    return float(2 * stdtr(df, -t))


def find_t_quantiles(tail: float, df: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Find t with P(|T| > t) = tail for each of the degrees of freedom `df` (not necessarily integers), same shape."""
    from scipy.special import stdtrit

    quantiles: NDArray[np.float64] = -stdtrit(df, tail / 2)
    return quantiles


def find_df(t: float) -> float:
    """Find the degrees of freedom for which P(|T| > t) = 1 - LEVEL; infinite if `t` is no larger than a normal
    quantile."""
    from scipy.special import stdtridf

    return float(stdtridf((1 + LEVEL) / 2, t)) if t > find_t_quantiles(1 - LEVEL, 1e6) else inf


def compute_reach(spread: VarianceEstimate) -> float:
    """Compute the half-width of the t interval of a value with this variance; 0 if nothing varies."""
    return sqrt(spread.variance) * float(find_t_quantiles(1 - LEVEL, spread.df)) if spread.variance else 0.0


def make_generator(name: str) -> np.random.Generator:
    """Return a generator at the start of the random number stream called `name`: the same name, the same numbers.

    NumPy may change the draws of a `Generator` between versions, so simulated results may change within their Monte
    Carlo error; core/draws.py has counter-based draws for results that must be bitwise stable."""
    return np.random.Generator(np.random.PCG64(derive_key(name)))
