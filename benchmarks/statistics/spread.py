"""A variance of a mean, and how many degrees of freedom it was estimated with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, inf, isfinite, nan

import numpy as np
from numpy.typing import NDArray


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


def mean_spread(scores: NDArray[np.float64], ends: tuple[float, float] = (0.0, 1.0)) -> Spread:
    """The part of the variance of a mean that comes from the draw of rows; `scores` has shape (seeds, rows).

    A mean at the very end of its scale has no sample variance, and still is not certain: where the scale has two finite
    `ends`, they are added as rows (as Agresti and Coull 1998 do with two of each)."""
    seeds = scores.shape[0]
    # Few distinct row means (k of S seeds right): sum over them exactly, so that order never shows in the bits.
    means, counts = np.unique(scores.sum(axis=0), return_counts=True)
    tally = [*zip((means / seeds).tolist(), counts.tolist(), strict=True)]
    if all(map(isfinite, ends)):
        tally += [(ends[0], 1), (ends[1], 1)]
    n = sum(count for _, count in tally)
    if n < 2 or not np.isfinite(means).all():
        return Spread(nan, 0)
    centre = fsum(value * count for value, count in tally) / n
    variance = fsum(count * (value - centre) ** 2 for value, count in tally) / (n - 1)
    return Spread(variance / n, n - 1)


def seed_spread(per_seed: list[float]) -> Spread | None:
    """The part of the variance that comes from training seeds; None for a single seed."""
    return Spread(_variance(per_seed) / len(per_seed), len(per_seed) - 1) if len(per_seed) > 1 else None
