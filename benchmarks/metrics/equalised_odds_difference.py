"""Equalised odds difference: how far apart the true, or the false, positive rates of two groups are.

    max over y in {positive, other}, groups g, h of  P(prediction = positive | y, g) - P(prediction = positive | y, h)

0 if the groups have the same true positive rate and the same false positive rate. Hardt, Price and Srebro, "Equality of
Opportunity in Supervised Learning" (NeurIPS 2016, arXiv:1610.02413), definition 2.1, as the difference that fairlearn
reports. Groups, `positive`, and rows without an answer are as in `demographic_parity_difference`; so is its bias on few
rows. A rate that fewer than two groups have (no rows of that true class) does not count; NaN if that is so of both.
"""

from __future__ import annotations

import numpy as np

from ._base import State
from .demographic_parity_difference import OPTIONS as OPTIONS
from .demographic_parity_difference import Options, find_largest_difference
from .demographic_parity_difference import fields as fields
from .demographic_parity_difference import merge as merge
from .demographic_parity_difference import update as update

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "lower"
BOUNDS = (0.0, 1.0)
GROUPS = "fixed"
SMOOTH = False


def compute(state: State, options: Options) -> float:
    """Compute the larger of the two largest differences; NaN if neither rate has two groups."""
    if not len(state["group"]):
        return float("nan")
    each = [
        find_largest_difference(*(state[name][:, truth] for name in ("selected", "lost", "rows"))) for truth in (0, 1)
    ]
    return float(np.fmax.reduce(each))
