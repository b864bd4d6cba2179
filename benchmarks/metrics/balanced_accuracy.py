"""Balanced accuracy: the mean recall over classes.

Brodersen et al., "The balanced accuracy and its posterior distribution" (ICPR 2010), for any number of classes.
"""

from __future__ import annotations

import numpy as np

from ._base import Answers, State, Task, Values, add_states, count_classes, guess_class

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
chance = guess_class

merge = add_states


def update(answers: Answers, truth: Values, task: Task) -> State:
    """`rows` and `hits` of each true class, int64, shape (classes,)."""
    return {"rows": count_classes(truth, task), "hits": count_classes(truth[answers.prediction == truth], task)}


def compute(state: State) -> float:
    """The mean recall over the classes that occur; NaN if there are no rows."""
    occurs = state["rows"] > 0
    return float(np.mean(state["hits"][occurs] / state["rows"][occurs])) if occurs.any() else float("nan")
