"""Variance estimates of means, with their degrees of freedom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, inf, isfinite, nan

import numpy as np
from numpy.typing import NDArray

from .clusters import Codes, choose_cluster_treatment, estimate_mean_covariance


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


def _compute_variance(values: list[float]) -> float:
    mean = compute_average(values)
    try:
        return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    except OverflowError:
        return inf


def estimate_row_variance(
    scores: NDArray[np.float64], ends: tuple[float, float] = (0.0, 1.0), clusters: Codes | None = None
) -> VarianceEstimate:
    """Estimate the variance component of a mean that comes from the sampling of rows, optionally in `clusters`
    (clusters.py); `scores` has shape (seeds, rows), `clusters` (rows,).

    A mean at the end of its scale has no sample variance, but is still uncertain: if the scale has two finite `ends`,
    they are added as rows (as Agresti and Coull 1998 do with two of each)."""
    seeds = scores.shape[0]
    if choose_cluster_treatment(clusters) in ("random", "fixed"):
        given = ends if all(map(isfinite, ends)) else None
        covariance, df = estimate_mean_covariance(scores.sum(axis=0, keepdims=True) / seeds, clusters, given)
        return VarianceEstimate(float(covariance[0, 0]), df)
    # With few distinct row means (k of S seeds right), sum over them exactly, so that the order has no effect.
    means, counts = np.unique(scores.sum(axis=0), return_counts=True)
    return estimate_counted_variance((means / seeds).tolist(), counts.tolist(), ends)


def estimate_counted_variance(
    values: list[float], times: list[int], ends: tuple[float, float] = (0.0, 1.0)
) -> VarianceEstimate:
    """Estimate the variance of a mean of independent rows, of which `times` have each of these distinct `values`."""
    tally = [*zip(values, times, strict=True)]
    if all(map(isfinite, ends)):
        tally += [(ends[0], 1), (ends[1], 1)]
    n = sum(count for _, count in tally)
    if n < 2 or not all(map(isfinite, values)):
        return VarianceEstimate(nan, 0)
    centre = fsum(value * count for value, count in tally) / n
    variance = fsum(count * (value - centre) ** 2 for value, count in tally) / (n - 1)
    return VarianceEstimate(variance / n, n - 1)


def estimate_seed_variance(per_seed: list[float]) -> VarianceEstimate | None:
    """Estimate the variance component of training seeds; None for a single seed."""
    return (
        VarianceEstimate(_compute_variance(per_seed) / len(per_seed), len(per_seed) - 1) if len(per_seed) > 1 else None
    )


def sum_variances(spreads: Sequence[VarianceEstimate]) -> VarianceEstimate:
    """Sum independent variances, with Satterthwaite's degrees of freedom (Biometrics Bulletin 1946); if all are zero,
    the minimum of their degrees of freedom."""
    parts = [spread for spread in spreads if spread.variance > 0]
    total = fsum(spread.variance for spread in parts)
    if not parts or not isfinite(total):
        return VarianceEstimate(total, min(spread.df for spread in spreads))
    # Uses shares of the total, as squares of very large or very small variances would overflow or underflow.
    return VarianceEstimate(total, 1 / fsum((spread.variance / total) ** 2 / spread.df for spread in parts))
