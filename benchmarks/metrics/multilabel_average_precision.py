"""Multi-label average precision: the mean over labels of the average precision, with missing labels.

For each label, the rows for which it is known (1 or 0, not NaN) are ranked by its score:

    AP = sum_k (R_k - R_(k-1)) P_k

over the distinct scores in descending order. A label counts if it has rows with 1 and rows with 0. This is `ap` of the
Open Graph Benchmark (Hu et al., NeurIPS 2020), the metric of OGB-MolPCBA in WILDS. Checked against `_eval_ap` in
ogb/graphproppred/evaluate.py of snap-stanford/ogb. The positive labels of a row without an answer are never retrieved,
and its negative labels are retrieved before all others (as in `average_precision`).
"""

from __future__ import annotations

from math import fsum

import numpy as np
from numpy.typing import NDArray

from ._base import Answers, State, Task, Values, concatenate_states, get_probabilities

VERSION = 1
TASKS = ("multilabel",)
NEEDS = "scores"
BETTER = "higher"
BOUNDS = (0.0, 1.0)

merge = concatenate_states


def update(answers: Answers, truth: Values, task: Task) -> State:
    """`score` float32 and `label` int8 (1, 0, or -1 where it is missing), both of shape (rows, labels)."""
    label = np.where(np.isnan(truth), -1, truth > 0).astype(np.int8)
    return {"score": get_probabilities(answers), "label": label}


def compute(state: State) -> float:
    """The mean over the labels that count; NaN if there are none."""
    pairs = zip(state["score"].T, state["label"].T, strict=True)
    precisions = [_compute_label_precision(score[label >= 0], label[label >= 0] == 1) for score, label in pairs]
    known = [precision for precision in precisions if precision is not None]
    return fsum(known) / len(known) if known else float("nan")


def _compute_label_precision(score: NDArray[np.float32], true: NDArray[np.bool_]) -> float | None:
    positives = int(true.sum())
    if not 0 < positives < len(true):
        return None
    order = np.argsort(-score, kind="stable")
    score, true = score[order], true[order]
    # Rows of equal score are retrieved together; rows with a score of minus infinity are never retrieved.
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True) & (score > -np.inf))
    hits = np.cumsum(true)[last]
    gained = np.diff(hits, prepend=0)
    return float(gained @ (hits / (last + 1))) / positives
