"""Accuracy: the share of rows whose predicted class is the true one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers
from ..model import Task

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)


def per_row(answers: Answers, truth: NDArray[Any], task: Task) -> NDArray[np.float64]:
    """1 if the class is correct, else 0."""
    right: NDArray[np.float64] = (answers.prediction == np.asarray(truth)).astype(np.float64)
    return right


def chance(task: Task) -> float:
    """Return 1 / classes, the expected accuracy of uniform random guessing."""
    return 1 / (task.classes or 1)
