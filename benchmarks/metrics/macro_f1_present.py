"""Macro F1 over the classes that are there: the mean over the classes of the truth of 2 TP / (true + named).

TP of the `true` rows of a class and the rows `named` so are both. Unlike `macro_f1`, a class that is named and never
occurs is not in the mean: naming it costs only the classes whose rows are missed. It is the F1 of iWildCam-WILDS, which
evaluates on the species that a part has: Koh et al., "WILDS" (ICML 2021). Held against `F1` in
wilds/common/metrics/all_metrics.py of p-lambda/wilds, which is scikit-learn's `f1_score` with the labels of the truth.
A row without an answer is a false negative of its class, and lowers no precision.
"""

from __future__ import annotations

import numpy as np

from . import State
from . import macro_f1 as _all
from ._tally import add_states
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
