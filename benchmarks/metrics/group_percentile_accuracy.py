"""Percentile of the accuracy over groups (users).

acc_g is the share of group g's rows whose class is correct; the value is the `percentile` (10 by default) of the acc_g,
in which each group counts once, with linear interpolation (NumPy's default; Hyndman and Fan 1996, type 7).

The "10th percentile accuracy" over reviewers of Amazon-WILDS: Koh et al., "WILDS" (ICML 2021). Checked against `eval`
in wilds/datasets/amazon_dataset.py of p-lambda/wilds. Only groups with rows count; NaN if there are none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ..answers import Answers
from ..model import Columns, Task
from . import _groups
from ._tally import State
from .accuracy import chance as chance
from .accuracy import per_row as _right

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
GROUPS = "drawn"
SMOOTH = False

fields = _groups.list_group_fields
merge = _groups.add_group_sums


class Options(_groups.Groups):
    """The groups, and the percentile over groups."""

    percentile: float = Field(default=10, ge=0, le=100)


OPTIONS = Options


def update(answers: Answers, truth: NDArray[Any], task: Task, columns: Columns, options: Options) -> State:
    """Count the correct rows and all rows of each group (`_groups.sum_by_group`)."""
    return _groups.sum_by_group(_right(answers, truth, task), _groups.find_memberships(options, truth, task, columns))


def compute(state: State, options: Options) -> float:
    """The percentile; NaN if there is no group."""
    return (
        float(np.percentile(_groups.compute_group_means(state), options.percentile))
        if len(state["group"])
        else float("nan")
    )
