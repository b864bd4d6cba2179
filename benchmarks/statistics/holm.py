"""Many tests, one claim each: Holm's adjustment, as of every entry against one baseline.

The smallest of m p-values is multiplied by m, the next by m - 1 .., each at least as large as the one before. Then the
chance of any wrong claim at all is at most the level, however the tests depend on each other (Holm, Scandinavian
Journal of Statistics 1979).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def adjust_by_holm(p: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """The adjusted p-values of `p` (m,), in the same order; a claim holds at the 5 % level where it is at most 0.05."""
    given = np.asarray(p, np.float64)
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError("a p-value must lie in [0, 1]: leave tests that have none out")
    order = np.argsort(given, kind="stable")
    times = np.arange(len(given), 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(given[order] * times), 1.0)
    return adjusted
