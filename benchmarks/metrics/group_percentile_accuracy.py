"""Percentile of the accuracy over groups (users).

acc_g is the share of group g's rows whose class is correct; the value is the `percentile` (10 by default) of the acc_g,
in which each group counts once, with linear interpolation (NumPy's default; Hyndman and Fan 1996, type 7).

The "10th percentile accuracy" over reviewers of Amazon-WILDS: Koh et al., "WILDS" (ICML 2021). Checked against `eval`
in wilds/datasets/amazon_dataset.py of p-lambda/wilds. Only groups with rows count; NaN if there are none.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from ._groups import Groups, over_groups
from .accuracy import chance as chance
from .accuracy import per_row as _right

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
GROUPS = "drawn"
SMOOTH = False


class Options(Groups):
    """The groups, and the percentile over groups."""

    percentile: float = Field(default=10, ge=0, le=100)


OPTIONS = Options
fields, update, merge, compute = over_groups(
    lambda accuracies, options: np.percentile(accuracies, options.percentile), per_row=_right
)
