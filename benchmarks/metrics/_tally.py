"""Counts of classes, and states that are sums of counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model import Task

State = dict[str, NDArray[Any]]
"""A sufficient statistic of a metric: arrays by name."""


def count_classes(classes: NDArray[Any], task: Task) -> NDArray[np.int64]:
    """Count how often each class occurs, shape (task.classes,); the -1 of a row without an answer is not counted."""
    return np.bincount(classes[classes >= 0], minlength=task.classes or 0)


def add_states(left: State, right: State) -> State:
    """Merge two states whose arrays are all sums over rows."""
    return {name: left[name] + right[name] for name in left}


def expect_zero(task: Task) -> float:
    """Return 0, the score of guessing: texts and boxes cannot be guessed, and independent predictions do not correlate
    with the truth."""
    return 0.0
