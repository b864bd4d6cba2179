"""Accuracy: the share of rows whose predicted class is the true one."""

from __future__ import annotations

import numpy as np

from ._base import Answers, Floats, Task, Values, guess_class

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
chance = guess_class


def per_row(answers: Answers, truth: Values, task: Task) -> Floats:
    """1 if the class is correct, else 0."""
    right: Floats = (answers.prediction == np.asarray(truth)).astype(np.float64)
    return right
