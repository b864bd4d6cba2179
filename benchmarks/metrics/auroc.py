"""AUROC: the probability that a row of a class has a higher predicted probability of that class than other rows.

Equal probabilities count one half (Hanley and McNeil, Radiology 1982). For two classes it is that of class 1; for more,
the unweighted mean of one-vs-rest over the classes that occur, unless all rows are of one class. Exact: pairs are
counted in integers. A row without an answer loses every pair that it is in.
"""

from __future__ import annotations

import numpy as np

from ._base import State, Task
from ._ranking import Curve, compute_macro_area, merge_rankings, rank_rows

VERSION = 1
TASKS = ("classification",)
NEEDS = "scores"
BETTER = "higher"
BOUNDS = (0.0, 1.0)

update, merge = rank_rows, merge_rankings


def compute(state: State) -> float:
    """The area; NaN if no class has both positive and negative rows."""
    return compute_macro_area(state, _compute_area)


def _compute_area(curve: Curve) -> float | None:
    if not curve.positives or not curve.negatives:
        return None
    # A row of another class loses to each row of the class retrieved before it, and counts half for those at its level.
    others = np.diff(curve.false, prepend=0)
    before = curve.true - np.diff(curve.true, prepend=0)
    return int(others @ (before + curve.true)) / (2 * curve.positives * curve.negatives)


def chance(task: Task) -> float:
    """Return 0.5, the expected value of random scores."""
    return 0.5
