"""Pearson's correlation in the worst group of rows: min over groups g of the correlation of prediction and truth in g.

The worse of urban and rural places in PovertyMap-WILDS: Koh et al., "WILDS" (ICML 2021). Held against `eval`
in wilds/datasets/poverty_dataset.py of p-lambda/wilds. There is no value where a group has none: its predictions or its
truth do not vary, or a row has no answer. (WILDS passes over a group whose predictions do not vary.)
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ..answers import Answers
from ..model import Columns, Task
from . import _groups, pearson
from ._tally import State
from .pearson import chance as chance

VERSION = 1
TASKS = ("regression",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (-1.0, 1.0)
OPTIONS = _groups.OverlappingGroups
GROUPS = "fixed"
SMOOTH = False

fields = _groups.list_group_fields


def update(
    answers: Answers, truth: NDArray[Any], task: Task, columns: Columns, options: _groups.OverlappingGroups
) -> State:
    """The moments of each group (`pearson.update`), stacked."""
    groups = _groups.find_memberships(options, truth, task, columns)
    return _groups.split_by_group(groups, lambda rows: pearson.update(answers[rows], truth[rows], task))


def merge(left: State, right: State) -> State:
    """The moments of both, group by group."""
    return _groups.merge_group_states(left, right, pearson.merge)


def compute(state: State, options: _groups.OverlappingGroups) -> float:
    """The lowest correlation of a group; NaN if there is none, or one has none."""
    correlations = _groups.compute_by_group(state, pearson.compute)
    return float(correlations.min()) if len(correlations) else float("nan")
