"""How sure is a number that is no mean of rows? Leave out one group of rows at a time: the delete-a-group jackknife.

With m_j of n rows in group j, h_j = n / m_j, the number t of all rows and t_j of all rows but group j's,

    variance = 1/G sum_j (p_j - centre)^2 / (h_j - 1)      p_j = h_j t - (h_j - 1) t_j      centre = sum_j p_j / h_j

(Busing, Meijer and van der Leeden, Statistics and Computing 1999, for groups of unequal size; of a mean it is the
variance by the groups' own means). Its t interval has G - 1 degrees of freedom (Kott, Journal of Official Statistics
2001). Groups are drawn at random, or are the clusters in which rows come. Leaving out one training seed at a time is
the same with groups of one; of a mean over seeds it is the plain variance / seeds.

A number that no group moves is not certain for that: `ends` is what one wholly right and one wholly wrong row more
would add to the variance, as in `spread.mean_spread`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .spread import Spread


def delete_group(value: float, without: NDArray[np.float64], sizes: NDArray[np.int64]) -> Spread:
    """The variance of `value` from its values `without` each group, shape (G,), of `sizes` rows (or seeds) each.

    NaN where any of them is; there must be two groups or more, and none of them empty."""
    groups = len(sizes)
    times = sizes.sum() / sizes
    with np.errstate(over="ignore", invalid="ignore"):  # too large to square: no variance, which its reader sees
        pseudo = times * value - (times - 1) * without
        centre = (pseudo / times).sum()
        return Spread(float(np.mean((pseudo - centre) ** 2 / (times - 1))), groups - 1)


def ends(
    values: NDArray[np.float64] | float, rows: NDArray[np.float64] | float, weights: NDArray[np.float64] | float = 1.0
) -> Spread:
    """What two rows at the ends of the scale [0, 1] add to the variance of sum(weights * values), for `values` that are
    independent means of `rows` rows each."""
    values, rows = np.asarray(values), np.asarray(rows)
    variance = np.sum((weights * np.hypot(values, 1 - values) / rows) ** 2)
    return Spread(float(variance), float(np.sum(rows)))
