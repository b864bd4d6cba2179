"""Root mean squared error, in the unit of the label."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ._base import Answers, State, Task, Values, add_states

VERSION = 1
TASKS = ("regression",)
NEEDS = "prediction"
BETTER = "lower"
BOUNDS = (0.0, float("inf"))

merge = add_states


def update(answers: Answers, truth: Values, task: Task) -> State:
    """Compute the sum of `squares` (float64) and the number of `rows` (int64), both of shape (). A merged sum agrees
    with the sum over all rows to a relative 1e-12."""
    with np.errstate(over="ignore"):  # an error too large to square is infinite
        squares = np.square(answers.prediction - truth.astype(np.float64)).sum()
    return {"squares": np.array(squares), "rows": np.array(len(answers))}


def compute(state: State) -> float:
    """Compute the error; NaN if there are no rows, or if a row has no answer, since no finite penalty is defined."""
    return sqrt(state["squares"] / state["rows"]) if state["rows"] else float("nan")
