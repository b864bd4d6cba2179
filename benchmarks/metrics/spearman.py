"""Spearman's rank correlation of predictions and truth: Pearson's, of their ranks, equal values at their mean rank
(Spearman, American Journal of Psychology 1904)."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers
from ..model import Task
from . import State

VERSION = 1
TASKS = ("regression",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (-1.0, 1.0)


def update(answers: Answers, truth: NDArray[Any], task: Task) -> State:
    """`pairs`, shape (2, rows): predictions and truths, by prediction and then truth, so that no order of rows or
    shards matters. Ranks need them all."""
    return _sort_pairs(np.stack([answers.prediction, truth]).astype(np.float64))


def merge(left: State, right: State) -> State:
    return _sort_pairs(np.concatenate([left["pairs"], right["pairs"]], axis=1))


def _sort_pairs(pairs: NDArray[np.float64]) -> State:
    return {"pairs": pairs[:, np.lexsort(pairs[::-1])]}


def compute(state: State) -> float:
    """The correlation; NaN if predictions or truth do not vary, or if a row has no answer."""
    pairs = state["pairs"]
    if not pairs.shape[1] or np.isnan(pairs).any():
        return float("nan")
    own, true = (_compute_centred_ranks(values) for values in pairs)
    spread = sqrt(own @ own) * sqrt(true @ true)
    return min(1.0, max(-1.0, float(own @ true) / spread)) if spread else float("nan")


def _compute_centred_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks less their mean; equal values have the mean of theirs. Half numbers, so that no order of rows matters."""
    _, position, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    middle = last - (count - 1) / 2
    centred: NDArray[np.float64] = middle[position] - (len(values) + 1) / 2
    return centred


def chance(task: Task) -> float:
    """What guessing scores: nothing is ranked."""
    return 0.0
