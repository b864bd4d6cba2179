"""Holm's adjustment of p-values for multiple tests, such as every entry against one baseline.

The smallest of m p-values is multiplied by m, the next by m - 1 .., and the results are made non-decreasing. This
controls the family-wise error rate under any dependence of the tests (Holm, Scandinavian Journal of Statistics 1979).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def adjust_by_holm(p: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Adjust the p-values `p` (m,), returned in the same order; a test rejects at the 5 % level if its value is at most
    0.05."""
    given = np.asarray(p, np.float64)
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError("p-values must lie in [0, 1]: exclude tests without a p-value")
    order = np.argsort(given, kind="stable")
    times = np.arange(len(given), 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(given[order] * times), 1.0)
    return adjusted
