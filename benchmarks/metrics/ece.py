"""Expected calibration error: the mean distance between confidence and accuracy over equal-width confidence bins.

Guo et al., "On Calibration of Modern Neural Networks" (ICML 2017), eq. 3: ECE = sum_b |B_b|/n |acc(B_b) - conf(B_b)|
over 15 bins (0, 1/15], .. (14/15, 1] of the highest probability, with ties going to the first class.
A row without an answer counts as confident and wrong, in a separate bin: it never offsets underconfidence elsewhere.
"""

from __future__ import annotations

import numpy as np

from ._base import Answers, State, Task, Values, add_states, get_probabilities

VERSION = 1
TASKS = ("classification",)
NEEDS = "scores"
BETTER = "lower"
BOUNDS = (0.0, 1.0)
SMOOTH = False

BINS = 15

merge = add_states


def update(answers: Answers, truth: Values, task: Task) -> State:
    """`rows` and `hits` (int64) and the sum of `confidence` (float64) of each bin, the last for rows without an
    answer: shape (16,).

    A sum of confidences depends on the order of rows by less than 1e-12 of itself; mostly not at all, since float32
    values of at least 1/16 add up exactly to tens of millions of rows.
    """
    scores = get_probabilities(answers)
    confidence = np.minimum(scores.max(axis=1).astype(np.float64), 1.0)
    right = scores.argmax(axis=1) == truth
    # A float32 times 15 is exact in float64, so no row is assigned to the wrong bin.
    bin_index = np.maximum(np.ceil(confidence * BINS).astype(np.int64) - 1, 0)
    bin_index[answers.prediction == -1] = BINS
    return {
        "rows": np.bincount(bin_index, minlength=BINS + 1),
        "hits": np.bincount(bin_index[right], minlength=BINS + 1),
        "confidence": np.bincount(bin_index, confidence, minlength=BINS + 1),
    }


def compute(state: State) -> float:
    """The error; NaN if there are no rows."""
    rows = int(state["rows"].sum())
    return float(np.abs(state["hits"] - state["confidence"]).sum()) / rows if rows else float("nan")
