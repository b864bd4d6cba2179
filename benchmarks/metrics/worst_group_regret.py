"""Regret of the worst group of rows: how much more often wrong than the best constant answer to just these rows.

With err_g the error rate on group g's rows, and s_g the share of the commonest class among their true ones, 1 - s_g is
the least error rate that one class, named for all of them, comes to in hindsight:

    regret_g = err_g - (1 - s_g)        the value: max over groups g of regret_g

Less is better; below 0 every group is predicted better than by its own best constant. An accuracy says which group is
hard; a regret says on which group the model does worse than little knowledge of that group alone would allow.

Regret on each of several groups, which may overlap, against the best in hindsight on that group: Acharya et al.,
"Oracle Efficient Algorithms for Groupwise Regret" (ICLR 2024, arXiv:2310.04652). The worst regret instead of the worst
risk: Agarwal and Zhang, "Minimax Regret Optimization for Robust Learning under Distribution Shift" (COLT 2022,
arXiv:2202.05436). Two things differ. What a group is compared with here is the constants, not a class of models (a
metric trains none), so that a model that has learnt anything about a group is below 0 on it. And rows are scored at
once, not round by round as in the online setting: no label is shown before the next row, the sum over rounds becomes a
mean over rows, and no bound of that literature applies.

Groups are made as for `worst_group_accuracy`. One without rows does not count; without any group there is no value.
The error rate of a small group is noisy: prefer groups of some hundred rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers
from ..model import Columns, Task
from . import _groups
from ._tally import State, add_states, count_classes

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "lower"
BOUNDS = (-1.0, 1.0)
OPTIONS = _groups.OverlappingGroups
GROUPS = "fixed"
SMOOTH = False

fields = _groups.list_group_fields


def update(
    answers: Answers, truth: NDArray[Any], task: Task, columns: Columns, options: _groups.OverlappingGroups
) -> State:
    """Of each group (`_groups.split_by_group`): how many rows are `wrong`, shape (), and how often each class is the
    true one, `classes` (task.classes,), both int64."""
    truth = np.asarray(truth)
    wrong = answers.prediction != truth

    def of(rows: NDArray[np.int64]) -> State:
        return {"wrong": np.array(np.count_nonzero(wrong[rows])), "classes": count_classes(truth[rows], task)}

    return _groups.split_by_group(_groups.find_memberships(options, truth, task, columns), of)


def merge(left: State, right: State) -> State:
    """The counts of both, group by group."""
    return _groups.merge_group_states(left, right, add_states)


def compute(state: State, options: _groups.OverlappingGroups) -> float:
    """The greatest regret of a group; NaN if there is none."""
    regrets = _groups.compute_by_group(state, _compute_regret)
    return float(regrets.max()) if len(regrets) else float("nan")


def _compute_regret(counts: State) -> float:
    classes = counts["classes"]
    rows = classes.sum()
    return float((counts["wrong"] - (rows - classes.max())) / rows)
