"""Pearson's correlation of predictions and true values, from their moments: means and sums of products of deviations
from them, in one pass and mergeable, without cancellation if values are far from zero (Chan, Golub and LeVeque,
"Algorithms for Computing the Sample Variance", American Statistician 37(3), 1983, for any number of variables)."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from ._base import Answers, State, Task, Values, expect_zero

VERSION = 1
TASKS = ("regression",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (-1.0, 1.0)
chance = expect_zero


def compute_moments(values: Values) -> State:
    """Compute moments of k variables on n rows, `values` (k, n): the number of `rows`, shape (); the `mean` of each,
    shape (k,); their `comoment`, the sums of products of deviations, shape (k, k). Infinite or NaN if values are too
    large to square."""
    values = values.astype(np.float64)
    rows = values.shape[1]
    # Subtracting the first row makes the deviations of a constant exactly 0.
    origin = values[:, 0] if rows else np.zeros(len(values))
    with np.errstate(over="ignore", invalid="ignore"):
        from_origin = values - origin[:, None]
        shift = from_origin.sum(axis=1) / max(rows, 1)
        deviation = from_origin - shift[:, None]
        return {"rows": np.array(rows), "mean": origin + shift, "comoment": deviation @ deviation.T}


def merge_moments(left: State, right: State) -> State:
    """Merge two moments by Chan et al.'s pairwise update; the result agrees with that of all rows to 1e-12 of the
    variances."""
    rows = left["rows"] + right["rows"]
    share = right["rows"] / max(rows, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        mean_difference = right["mean"] - left["mean"]
        return {
            "rows": rows,
            "mean": left["mean"] + mean_difference * share,
            "comoment": left["comoment"]
            + right["comoment"]
            + np.outer(mean_difference, mean_difference) * (left["rows"] * share),
        }


merge = merge_moments


def update(answers: Answers, truth: Values, task: Task) -> State:
    """Compute the moments of predictions and true values; numbers too large to square give NaN."""
    return compute_moments(np.stack([answers.prediction, truth]))


def compute(state: State) -> float:
    """Compute the correlation; NaN if predictions or true values are constant, or if a row has no answer."""
    (own, shared), (_, true) = state["comoment"].tolist()
    spread = sqrt(own) * sqrt(true)
    return min(1.0, max(-1.0, shared / spread)) if 0 < spread < inf else float("nan")
