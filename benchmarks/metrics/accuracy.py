"""Accuracy: the share of rows whose predicted class is the true one."""

from __future__ import annotations

import numpy as np

from ._base import Answers, Floats, Task, Values

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)


def per_row(answers: Answers, truth: Values, task: Task) -> Floats:
    """1 if the class is correct, else 0."""
    right: Floats = (answers.prediction == np.asarray(truth)).astype(np.float64)
    return right


def chance(task: Task) -> float:
    """Return 1 / classes, the expected accuracy of uniform random guessing."""
    return 1 / (task.classes or 1)
