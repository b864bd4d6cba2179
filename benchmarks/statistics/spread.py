"""A variance of a mean, and how many degrees of freedom it was estimated with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, inf, isfinite, nan

import numpy as np
from numpy.typing import NDArray

from .clusters import Codes, covariance_of_means, treated


@dataclass(frozen=True)
class Spread:
    """A variance of a mean and its degrees of freedom."""

    variance: float
    df: float


def average(values: Sequence[float]) -> float:
    """The mean, exactly rounded; NaN where one of the values, or their sum, is not finite."""
    try:
        total = fsum(values)
    except (OverflowError, ValueError):  # too large to add, infinities of both signs
        return nan
    return total / len(values) if isfinite(total) else nan


def _variance(values: list[float]) -> float:
    mean = average(values)
    try:
        return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    except OverflowError:
        return inf


def mean_spread(
    scores: NDArray[np.float64], ends: tuple[float, float] = (0.0, 1.0), clusters: Codes | None = None
) -> Spread:
    """The part of the variance of a mean that comes from the draw of rows, in `clusters` (clusters.py) where there are
    any; `scores` has shape (seeds, rows), `clusters` (rows,).

    A mean at the very end of its scale has no sample variance, and still is not certain: where the scale has two finite
    `ends`, they are added as rows (as Agresti and Coull 1998 do with two of each)."""
    seeds = scores.shape[0]
    if treated(clusters) in ("random", "fixed"):
        given = ends if all(map(isfinite, ends)) else None
        covariance, df = covariance_of_means(scores.sum(axis=0, keepdims=True) / seeds, clusters, given)
        return Spread(float(covariance[0, 0]), df)
    # Few distinct row means (k of S seeds right): sum over them exactly, so that order never shows in the bits.
    means, counts = np.unique(scores.sum(axis=0), return_counts=True)
    return counted_spread((means / seeds).tolist(), counts.tolist(), ends)


def counted_spread(values: list[float], times: list[int], ends: tuple[float, float] = (0.0, 1.0)) -> Spread:
    """The same of a mean of independent rows, of which `times` have each of these distinct `values`."""
    tally = [*zip(values, times, strict=True)]
    if all(map(isfinite, ends)):
        tally += [(ends[0], 1), (ends[1], 1)]
    n = sum(count for _, count in tally)
    if n < 2 or not all(map(isfinite, values)):
        return Spread(nan, 0)
    centre = fsum(value * count for value, count in tally) / n
    variance = fsum(count * (value - centre) ** 2 for value, count in tally) / (n - 1)
    return Spread(variance / n, n - 1)


def seed_spread(per_seed: list[float]) -> Spread | None:
    """The part of the variance that comes from training seeds; None for a single seed."""
    return Spread(_variance(per_seed) / len(per_seed), len(per_seed) - 1) if len(per_seed) > 1 else None


def together(spreads: Sequence[Spread]) -> Spread:
    """The sum of independent variances, with Satterthwaite's degrees of freedom (Biometrics Bulletin 1946); the fewest
    of any where none is above zero."""
    parts = [spread for spread in spreads if spread.variance > 0]
    total = fsum(spread.variance for spread in parts)
    if not parts or not isfinite(total):
        return Spread(total, min(spread.df for spread in spreads))
    # By shares of the total: squares of very large or very small variances are not floats.
    return Spread(total, 1 / fsum((spread.variance / total) ** 2 / spread.df for spread in parts))
