"""Pearson's correlation of predictions and truth.

The state is that of Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance" (American Statistician
37(3), 1983), for two variables: means, and sums of products of deviations from them, which avoid cancellation if values
are far from zero.
"""

from __future__ import annotations

from math import inf, sqrt
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
    """The number of `rows`, shape (); the `mean` of prediction and truth, shape (2,); their `comoment`, the sums of
    products of deviations, shape (2, 2). Merged ones agree with those of the whole to 1e-12 of the variances."""
    values = np.stack([answers.prediction, truth]).astype(np.float64)
    rows = len(answers)
    # Relative to the first row, a constant has deviations of exactly 0.
    origin = values[:, 0] if rows else np.zeros(2)
    with np.errstate(over="ignore", invalid="ignore"):  # numbers too large to square have no correlation: NaN
        from_origin = values - origin[:, None]
        shift = from_origin.sum(axis=1) / max(rows, 1)
        deviation = from_origin - shift[:, None]
        return {"rows": np.array(rows), "mean": origin + shift, "comoment": deviation @ deviation.T}


def merge(left: State, right: State) -> State:
    """The moments of both: Chan et al.'s pairwise update."""
    rows = left["rows"] + right["rows"]
    share = right["rows"] / max(rows, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        apart = right["mean"] - left["mean"]
        return {
            "rows": rows,
            "mean": left["mean"] + apart * share,
            "comoment": left["comoment"] + right["comoment"] + np.outer(apart, apart) * (left["rows"] * share),
        }


def compute(state: State) -> float:
    """The correlation; NaN if predictions or truth do not vary, or if a row has no answer."""
    (own, shared), (_, true) = state["comoment"].tolist()
    spread = sqrt(own) * sqrt(true)
    return min(1.0, max(-1.0, shared / spread)) if 0 < spread < inf else float("nan")


def chance(task: Task) -> float:
    """Numbers that know nothing of the row are not correlated with its truth."""
    return 0.0
