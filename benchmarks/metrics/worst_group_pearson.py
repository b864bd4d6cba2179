"""Worst-group Pearson correlation: the minimum over groups g of the correlation of predictions and true values in g.

The metric of PovertyMap-WILDS, with urban and rural places as groups: Koh et al., "WILDS" (ICML 2021). Checked against
`eval` in wilds/datasets/poverty_dataset.py of p-lambda/wilds. NaN if it is not defined in a group: the predictions or
true values are constant, or a row has no answer. (WILDS ignores a group with constant predictions.)
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
    """Compute the moments of each group (`pearson.update`), stacked."""
    groups = _groups.find_memberships(options, truth, task, columns)
    return _groups.split_by_group(groups, lambda rows: pearson.update(answers[rows], truth[rows], task))


def merge(left: State, right: State) -> State:
    """Merge the moments of both states by group."""
    return _groups.merge_group_states(left, right, pearson.merge)


def compute(state: State, options: _groups.OverlappingGroups) -> float:
    """Compute the lowest correlation of a group; NaN if there are no groups, or if one has no correlation."""
    correlations = _groups.compute_by_group(state, pearson.compute)
    return float(correlations.min()) if len(correlations) else float("nan")
