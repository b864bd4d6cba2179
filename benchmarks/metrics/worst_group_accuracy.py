"""Worst-group accuracy: the minimum over groups g of the share of g's rows whose class is correct.

Groups are defined by fields of the rows (`by`, and `of` if a row may be in several groups; `_groups.py`), except those
in `without`:

- CivilComments-WILDS: `of` the eight identities, `by` the label: 16 overlapping groups;
- FMoW-WILDS: `by` region, `without` "Other";
- Waterbirds, CelebA: `by` the background (or sex) and the label.

Koh et al., "WILDS" (ICML 2021); Sagawa et al., "Distributionally Robust Neural Networks for
Group Shifts" (ICLR 2020). Checked against `eval` in wilds/datasets/civilcomments_dataset.py and
fmow_dataset.py of p-lambda/wilds. A group without rows does not count; NaN if there are no groups.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

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
OPTIONS = _groups.OverlappingGroups
GROUPS = "fixed"
SMOOTH = False

fields = _groups.list_group_fields
merge = _groups.add_group_sums


def update(
    answers: Answers, truth: NDArray[Any], task: Task, columns: Columns, options: _groups.OverlappingGroups
) -> State:
    """Count the correct rows and all rows of each group (`_groups.sum_by_group`)."""
    return _groups.sum_by_group(_right(answers, truth, task), _groups.find_memberships(options, truth, task, columns))


def compute(state: State, options: _groups.OverlappingGroups) -> float:
    """Compute the lowest accuracy of a group; NaN if there are no groups."""
    return float(_groups.compute_group_means(state).min()) if len(state["group"]) else float("nan")
