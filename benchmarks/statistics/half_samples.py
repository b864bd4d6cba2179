"""Balanced half-samples: the variance of a non-smooth statistic, such as the point where a curve crosses a level.

Leaving out a few rows at a time changes a non-smooth statistic too rarely to estimate its variance; leaving out half of
them does not have this problem. With t the statistic on all rows and t_r that on the r-th half, a share f_r of them,

    variance = mean over r of f_r / (1 - f_r) (t_r - t)^2

(the delete-d jackknife: Shao and Wu, Annals of Statistics 1989). Halves consist of whole groups of rows, balanced so
that for a mean this is the variance from the groups' means (McCarthy, Review of the International Statistical Institute
1969).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .variance_estimate import VarianceEstimate

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
