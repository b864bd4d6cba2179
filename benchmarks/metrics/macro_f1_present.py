"""Macro F1 over the classes that occur in the true labels: the mean of 2 TP / (true + predicted).

TP is the number of rows whose true and predicted label are both the class. Unlike in `macro_f1`, a class that is
predicted but never occurs is not in the mean: predicting it only lowers the F1 of the classes whose rows are missed. It
is the F1 of iWildCam-WILDS, which evaluates on the species that occur in a part: Koh et al., "WILDS" (ICML 2021).
Checked against `F1` in wilds/common/metrics/all_metrics.py of p-lambda/wilds, which is scikit-learn's `f1_score` with
the labels that occur. A row without an answer is a false negative of its class, and lowers no precision.
"""

from __future__ import annotations

import numpy as np

from . import macro_f1 as _all
from ._base import State, add_states
from .macro_f1 import chance as chance

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)

update, merge = _all.update, add_states


def compute(state: State) -> float:
    """The mean of 2 hits / (true + named) over the classes that occur; NaN if there are no rows."""
    occurs = state["true"] > 0
    share = 2 * state["hits"][occurs] / (state["true"] + state["named"])[occurs]
    return float(np.mean(share)) if occurs.any() else float("nan")
