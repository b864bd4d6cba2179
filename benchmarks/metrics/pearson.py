"""Pearson's correlation of predictions and truth, from their moments (`_moments.py`): nothing cancels far from zero."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers
from ..model import Task
from . import State, _moments

VERSION = 1
TASKS = ("regression",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (-1.0, 1.0)

merge = _moments.merge_moments


def update(answers: Answers, truth: NDArray[Any], task: Task) -> State:
    """The moments of prediction and truth; numbers too large to square have no correlation: NaN."""
    return _moments.compute_moments(np.stack([answers.prediction, truth]))


def compute(state: State) -> float:
    """The correlation; NaN if predictions or truth do not vary, or if a row has no answer."""
    (own, shared), (_, true) = state["comoment"].tolist()
    spread = sqrt(own) * sqrt(true)
    return min(1.0, max(-1.0, shared / spread)) if 0 < spread < inf else float("nan")


def chance(task: Task) -> float:
    """Numbers that know nothing of the row are not correlated with its truth."""
    return 0.0
