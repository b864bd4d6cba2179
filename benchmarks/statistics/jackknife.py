"""How sure is a number that is not a mean of rows? Leave out one group of rows at a time: the delete-a-group jackknife.

With m_j of n rows in group j, h_j = n / m_j, the number t of all rows and t_j of all rows but group j's,

    p_j = h_j t - (h_j - 1) t_j      centre = sum_j p_j / h_j

the pseudo-values p_j (Busing, Meijer and van der Leeden, Statistics and Computing 1999) are to t what the groups' own
means are to a mean of rows: their variance around the centre is taken as that of a mean of clusters (clusters.py,
`compute_robust_terms`), so that groups may be of any size, and may be the clusters in which rows come; of a mean of
rows it is the same number. For equal groups it is sum_j (p_j - centre)^2 / (G (G - 1)), with G - 1 degrees of freedom
(Kott, Journal of Official Statistics 2001). Leaving out one training seed at a time is the same with groups of one; of
a mean over seeds it is the plain variance / seeds.

A number that no group moves is not certain for that: `estimate_end_variance` is what one wholly right and one wholly
wrong row more would add to the variance, as in `variance_estimate.estimate_row_variance`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .clusters import compute_degrees_of_freedom, compute_robust_terms
from .variance_estimate import VarianceEstimate


def estimate_jackknife_variance(
    value: float, without: NDArray[np.float64], sizes: NDArray[np.int64]
) -> VarianceEstimate:
    """The variance of `value` from its values `without` each group, shape (G,), of `sizes` rows (or seeds) each.

    NaN where any of them is; there must be two groups or more, and none of them empty."""
    with np.errstate(over="ignore", invalid="ignore"):  # too large to square: no variance, which its reader sees
        deviations = compute_group_deviations(np.array([value]), without[None], sizes)
        return VarianceEstimate(float((deviations @ deviations.T)[0, 0]), compute_degrees_of_freedom(sizes))


def compute_group_deviations(
    values: NDArray[np.float64], without: NDArray[np.float64], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What each group adds to M values (M,), shape (M, G), from their values `without` each group (M, G): their
    covariance is the product of this with its transpose."""
    times = sizes.sum() / sizes
    pseudo = times * values[:, None] - (times - 1) * without
    return compute_robust_terms(pseudo - (pseudo / times).sum(axis=1, keepdims=True), sizes)


def estimate_end_variance(
    values: NDArray[np.float64] | float, rows: NDArray[np.float64] | float, weights: NDArray[np.float64] | float = 1.0
) -> VarianceEstimate:
    """What two rows at the ends of the scale [0, 1] add to the variance of sum(weights * values), for `values` that are
    independent means of `rows` rows each."""
    values, rows = np.asarray(values), np.asarray(rows)
    variance = np.sum((weights * np.hypot(values, 1 - values) / rows) ** 2)
    return VarianceEstimate(float(variance), float(np.sum(rows)))
