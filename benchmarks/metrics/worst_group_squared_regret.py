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

import numpy as np

from ._base import Answers, State, Task, Values
from ._groups import OverlappingGroups, over_groups
from .pearson import compute_moments, merge_moments

VERSION = 1
TASKS = ("regression",)
NEEDS = "prediction"
BETTER = "lower"
BOUNDS = (-inf, inf)
OPTIONS = OverlappingGroups
GROUPS = "fixed"
SMOOTH = False


def _measure(answers: Answers, truth: Values, task: Task) -> State:
    """Compute the sum of the `squares` of the errors, shape (), and the moments of the true values (`pearson.py`), of
    one variable."""
    truth = np.asarray(truth).astype(np.float64)
    with np.errstate(over="ignore"):  # an error too large to square is infinite
        squares = np.square(answers.prediction - truth).sum()
    return {"squares": np.array(squares)} | compute_moments(truth[None])


def _merge(left: State, right: State) -> State:
    return {"squares": left["squares"] + right["squares"]} | merge_moments(left, right)


def _compute_regret(state: State) -> float:
    with np.errstate(invalid="ignore"):  # infinity minus infinity is NaN
        return float((state["squares"] - state["comoment"][0, 0]) / state["rows"])


fields, update, merge, compute = over_groups(
    lambda regrets, options: regrets.max(), update=_measure, merge=_merge, compute=_compute_regret
)
