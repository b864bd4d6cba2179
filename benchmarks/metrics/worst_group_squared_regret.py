"""Worst-group squared regret: the maximum over groups of the squared error above that of the best constant.

With mse_g the mean squared error on group g's rows, the lowest mean squared error of a constant prediction in hindsight
is the variance of the true values, attained by their mean:

    regret_g = mse_g - var_g            the value: max over groups g of regret_g, in the squared unit of the label

var_g divides by the number of rows. Lower is better; if it is below 0, every group is predicted better than by its own
mean: for one group, regret = -R^2 var. It is not divided by var_g, so that groups with almost constant true values do
not dominate.

References, the comparators (constants) and the differences from the online setting are those of `worst_group_regret`,
the corresponding metric for classes. NaN if a row of a group has no answer, since no finite penalty is defined; a group
without rows does not count.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers
from ..model import Columns, Task
from . import _groups, _moments
from ._tally import State

VERSION = 1
TASKS = ("regression",)
NEEDS = "prediction"
BETTER = "lower"
BOUNDS = (-inf, inf)
OPTIONS = _groups.OverlappingGroups
GROUPS = "fixed"
SMOOTH = False

fields = _groups.list_group_fields


def update(
    answers: Answers, truth: NDArray[Any], task: Task, columns: Columns, options: _groups.OverlappingGroups
) -> State:
    """Compute for each group (`_groups.split_by_group`) the sum of the `squares` of the errors, shape (), and the
    moments of the true values (`_moments.py`), of one variable."""
    truth = np.asarray(truth).astype(np.float64)
    with np.errstate(over="ignore"):  # an error too large to square is infinite
        squares = np.square(answers.prediction - truth)

    def of(rows: NDArray[np.int64]) -> State:
        return {"squares": np.array(squares[rows].sum())} | _moments.compute_moments(truth[None, rows])

    return _groups.split_by_group(_groups.find_memberships(options, truth, task, columns), of)


def merge(left: State, right: State) -> State:
    """Merge the sums and moments of both states by group."""
    return _groups.merge_group_states(left, right, _merge_group)


def _merge_group(left: State, right: State) -> State:
    return {"squares": left["squares"] + right["squares"]} | _moments.merge_moments(left, right)


def compute(state: State, options: _groups.OverlappingGroups) -> float:
    """Compute the largest regret of a group; NaN if there are no groups, or if one has no regret."""
    regrets = _groups.compute_by_group(state, _compute_regret)
    return float(regrets.max()) if len(regrets) else float("nan")


def _compute_regret(state: State) -> float:
    with np.errstate(invalid="ignore"):  # infinity minus infinity is NaN
        return float((state["squares"] - state["comoment"][0, 0]) / state["rows"])
