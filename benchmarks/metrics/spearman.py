"""Spearman's rank correlation of predictions and true values: Pearson's correlation of their ranks, with ties at their
mean rank (Spearman, American Journal of Psychology 1904)."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ._base import Answers, Floats, State, Task, Values, expect_zero

VERSION = 1
TASKS = ("regression",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (-1.0, 1.0)
chance = expect_zero


def update(answers: Answers, truth: Values, task: Task) -> State:
    """Collect `pairs`, shape (2, rows): predictions and true values, sorted by prediction and then by true value, so
    that the order of rows and shards does not matter. Ranks require all pairs."""
    return _sort_pairs(np.stack([answers.prediction, truth]).astype(np.float64))


def merge(left: State, right: State) -> State:
    return _sort_pairs(np.concatenate([left["pairs"], right["pairs"]], axis=1))


def _sort_pairs(pairs: Floats) -> State:
    return {"pairs": pairs[:, np.lexsort(pairs[::-1])]}


def compute(state: State) -> float:
    """Compute the correlation; NaN if predictions or true values are constant, or if a row has no answer."""
    pairs = state["pairs"]
    if not pairs.shape[1] or np.isnan(pairs).any():
        return float("nan")
    own, true = (_compute_centred_ranks(values) for values in pairs)
    spread = sqrt(own @ own) * sqrt(true @ true)
    return min(1.0, max(-1.0, float(own @ true) / spread)) if spread else float("nan")


def _compute_centred_ranks(values: Floats) -> Floats:
    """Return centred ranks, ties at their mean rank. These are multiples of one half, so sums do not depend on
    order."""
    _, position, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    middle = last - (count - 1) / 2
    centred: Floats = middle[position] - (len(values) + 1) / 2
    return centred
