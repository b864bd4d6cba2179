"""The delete-a-group jackknife: the variance of a statistic that is not a mean over rows.

With m_j of n rows in group j, h_j = n / m_j, the statistic t on all rows and t_j on all rows except group j,

    p_j = h_j t - (h_j - 1) t_j      centre = sum_j p_j / h_j

the pseudo-values p_j (Busing, Meijer and van der Leeden, Statistics and Computing 1999) correspond to the groups' means
for a mean over rows. Their variance around the centre is estimated as for a mean over clusters (clusters.py,
`compute_robust_terms`), so groups may have any size and may be the clusters of the rows; for a mean over rows, the
result is the same. For equal groups it is sum_j (p_j - centre)^2 / (G (G - 1)), with G - 1 degrees of freedom (Kott,
Journal of Official Statistics 2001). Leaving out one training seed at a time is the same with groups of one; for a mean
over seeds it is the sample variance / seeds.

A statistic that no group changes is still uncertain: `estimate_end_variance` is the variance that one more entirely
right and one more entirely wrong row would add, as in `variance_estimate.estimate_row_variance`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .clusters import compute_degrees_of_freedom, compute_robust_terms
from .variance_estimate import VarianceEstimate


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
    that are independent means of `rows` rows each."""
    values, rows = np.asarray(values), np.asarray(rows)
    variance = np.sum((weights * np.hypot(values, 1 - values) / rows) ** 2)
    return VarianceEstimate(float(variance), float(np.sum(rows)))
