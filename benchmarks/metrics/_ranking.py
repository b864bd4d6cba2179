"""Ranking of rows by the probability of a class: the state and the curve shared by AUROC and average precision.

Each class is ranked against all others (one-vs-rest); with two classes only class 1, since class 0 is symmetric.
A row without an answer loses every comparison: if it is of the class it is never retrieved, otherwise it is ranked
above every row with an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

from ._base import Answers, State, Task, Values, get_probabilities

_NEVER, _FIRST = 0, 2**31 - 1


def rank_rows(answers: Answers, truth: Values, task: Task) -> State:
    """Rank rows: `rank_rows`, uint32, shape (rankings, rows), has for each ranked class the rows' levels in ascending
    order, each level doubled, plus one if the row is of the class.

    The level increases with the probability; equal probabilities have equal levels. It replaces the float so that level
    and class sort as one number: a state is built, and two are merged, by sorting alone.
    """
    scores = get_probabilities(answers)
    classes = np.array([1]) if scores.shape[1] == 2 else np.arange(scores.shape[1])
    own = truth == classes[:, None]
    # The bits of non-negative floats have the order of the floats; doubling drops the sign of -0.0.
    level = np.ascontiguousarray(scores.T[classes], np.float32).view(np.uint32) + 1
    unanswered = answers.prediction == -1
    level[:, unanswered] = np.where(own[:, unanswered], _NEVER, _FIRST)
    level *= 2
    level += own
    level.sort(axis=1)
    return {"ranked": level}


def merge_rankings(left: State, right: State) -> State:
    """Merge two rankings."""
    return {"ranked": np.sort(np.concatenate([left["ranked"], right["ranked"]], axis=1), axis=1)}


@dataclass(frozen=True)
class Curve:
    """Counts of retrieved rows of a class as the threshold falls from one distinct probability to the next.

    true, false: int64, shape (thresholds,): the number of rows at or above each threshold that are of the class, and
      that are not.
    positives, negatives: the total numbers of each.
    """

    true: NDArray[np.int64]
    false: NDArray[np.int64]
    positives: int
    negatives: int


def compute_macro_area(state: State, area: Callable[[Curve], float | None]) -> float:
    """Compute the mean of `area` over the ranked classes for which it is defined (not None); NaN if there are none."""
    areas = [value for ranked in state["ranked"] if (value := area(_make_curve(ranked))) is not None]
    return fsum(areas) / len(areas) if areas else float("nan")


def _make_curve(ranked: NDArray[np.uint32]) -> Curve:
    level, own = ranked[::-1] >> 1, ranked[::-1] & 1
    # Rows of equal probability are retrieved together: thresholds are where the level falls. The last level is that of
    # the rows that are never retrieved, and gives no threshold.
    last = np.flatnonzero(np.diff(level, append=np.uint32(_NEVER)))
    true = np.cumsum(own, dtype=np.int64)[last]
    positives = int(np.count_nonzero(own))
    return Curve(true, last + 1 - true, positives, len(ranked) - positives)
