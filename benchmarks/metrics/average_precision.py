"""Average precision: precision at every threshold, weighted by the recall gained there, without interpolation.

AP = sum_k (R_k - R_(k-1)) P_k over the distinct probabilities in descending order, as in scikit-learn. For two classes
it is that of class 1; for more, the unweighted mean of one-vs-rest over the classes that occur. A row of the class
without an answer is never retrieved and adds nothing, as in TREC's measure (Buckley and Voorhees, SIGIR 2000); a row of
another class without an answer is retrieved before all others.
"""

from __future__ import annotations

import numpy as np

from ._base import State
from ._ranking import Curve, compute_macro_area, merge_rankings, rank_rows

VERSION = 1
TASKS = ("classification",)
NEEDS = "scores"
BETTER = "higher"
BOUNDS = (0.0, 1.0)

update, merge = rank_rows, merge_rankings


def compute(state: State) -> float:
    """The average precision; NaN where no ranked class occurs."""
    return compute_macro_area(state, _compute_area)


def _compute_area(curve: Curve) -> float | None:
    if not curve.positives:
        return None
    gained = np.diff(curve.true, prepend=0)
    precision = curve.true / (curve.true + curve.false)
    return float(gained @ precision) / curve.positives
