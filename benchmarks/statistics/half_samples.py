"""How sure is a number that jumps as rows go, such as the place where a curve crosses a level? Balanced half-samples.

Leaving out a few rows at a time moves such a number too seldom to show how unsure it is; leaving out half of them does
not miss it. With t the number on all rows and t_r the number on the r-th half, a share f_r of them,

    variance = mean over r of f_r / (1 - f_r) (t_r - t)^2

(the delete-d jackknife: Shao and Wu, Annals of Statistics 1989). Halves are of whole groups of rows, balanced so that
of a mean this is the variance by the groups' own means (McCarthy, Review of the International Statistical Institute
1969).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .variance_estimate import VarianceEstimate

Halves = NDArray[np.bool_]
"""Which groups are in each half, shape (halves, groups)."""


def make_balanced_halves(groups: int) -> Halves:
    """Balanced halves of two groups or more, each with its complement.

    They are the rows of Sylvester's Hadamard matrix, of the largest order that is not above `groups`, and their
    negatives. Groups beyond the order go with the first ones."""
    signs = np.ones((1, 1), np.int8)
    while 2 * len(signs) <= groups:
        signs = np.block([[signs, signs], [signs, -signs]])
    half = signs[1:, np.arange(groups) % len(signs)] > 0
    return np.concatenate([half, ~half])


def estimate_half_sample_variance(
    value: float, on_halves: NDArray[np.float64], halves: Halves, sizes: NDArray[np.int64]
) -> VarianceEstimate:
    """The variance of `value` from its values `on_halves`, shape (halves,), of groups of `sizes` rows each.

    Half as many degrees of freedom as there are halves: a half and its complement say the same of a mean. NaN where any
    value is; no group may be empty."""
    share = halves @ sizes / sizes.sum()
    return VarianceEstimate(float(np.mean(share / (1 - share) * (on_halves - value) ** 2)), len(halves) // 2)
