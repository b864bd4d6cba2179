"""Pearson's correlation of predictions and true values, from their moments without cancellation (`_moments.py`)."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from . import _moments
from ._base import Answers, State, Task, Values, expect_zero

VERSION = 1
TASKS = ("regression",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (-1.0, 1.0)
chance = expect_zero

merge = _moments.merge_moments


def update(answers: Answers, truth: Values, task: Task) -> State:
    """Compute the moments of predictions and true values; numbers too large to square give NaN."""
    return _moments.compute_moments(np.stack([answers.prediction, truth]))


def compute(state: State) -> float:
    """Compute the correlation; NaN if predictions or true values are constant, or if a row has no answer."""
    (own, shared), (_, true) = state["comoment"].tolist()
    spread = sqrt(own) * sqrt(true)
    return min(1.0, max(-1.0, shared / spread)) if 0 < spread < inf else float("nan")
