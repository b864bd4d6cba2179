"""Macro F1: the mean over classes of the harmonic mean of precision and recall.

It is the averaged F1 of Opitz and Burst, "Macro F1 and Macro F1" (arXiv:1911.03347), over the classes that occur in the
true labels or in the predictions, as in scikit-learn. A row without an answer is a false negative of its true class: it
lowers the recall of that class but no precision, since no class was predicted. A wrong class lowers both.
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
    """Count how often each class is `true`, `named` (predicted) and both (`hits`), int64, shape (classes,)."""
    return {
        "true": count_classes(truth, task),
        "named": count_classes(answers.prediction, task),
        "hits": count_classes(truth[answers.prediction == truth], task),
    }


def compute(state: State) -> float:
    """The mean of 2 hits / (true + named) over the classes that occur; NaN if there are no rows."""
    marked = state["true"] + state["named"]
    occurs = marked > 0
    return float(np.mean(2 * state["hits"][occurs] / marked[occurs])) if occurs.any() else float("nan")
