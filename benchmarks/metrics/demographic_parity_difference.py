"""Demographic parity difference: how far apart the rates are at which two groups are predicted to be positive.

    max over groups g, h of  P(prediction = positive | g) - P(prediction = positive | h)

0 if every group is predicted positive as often; it does not depend on the true classes. Agarwal, Beygelzimer, Dudik,
Langford and Wallach, "A Reductions Approach to Fair Classification" (ICML 2018, arXiv:1803.02453), definition 1, as the
difference that fairlearn reports. Groups are those of `by` (`_groups.py`), and `positive` is a class (1). A constant
prediction has 0: read it beside a metric of accuracy. NaN with fewer than two groups. Without differences the value on
few rows is above 0, the more groups the further. A row without an answer counts against the difference on either side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ...core.errors import BadDefinition
from . import _groups
from ._base import Answers, Columns, State, Task, Values, add_states

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "lower"
BOUNDS = (0.0, 1.0)
GROUPS = "fixed"
SMOOTH = False


class Options(_groups.Groups):
    """`positive`: the class whose rate of predictions is compared."""

    positive: int = Field(1, ge=0)


OPTIONS = Options
fields = _groups.list_group_fields


def update(answers: Answers, truth: Values, task: Task, columns: Columns, options: Options) -> State:
    """Count the `rows` of each group, those `selected` (predicted `positive`) and those `lost` (without an answer).

    Each is (2,) int64: of the rows whose true class is another one, and of those whose true class is `positive`.
    `BadDefinition` if the task has no class `positive`."""
    classes = task.classes or 0
    if options.positive >= classes:
        raise BadDefinition(f"positive = {options.positive}, and the task has the classes 0 to {classes - 1}")
    positive = (np.asarray(truth) == options.positive).astype(np.int64)
    given = {
        "selected": answers.prediction == options.positive,
        "lost": answers.prediction < 0,
        "rows": np.ones(len(positive), bool),
    }

    def count(rows: NDArray[np.int64]) -> State:
        return {name: np.bincount(positive[rows], mask[rows], 2).astype(np.int64) for name, mask in given.items()}

    return _groups.split_by_group(_groups.find_memberships(options, truth, task, columns), count)


def merge(left: State, right: State) -> State:
    """Merge the counts of both states by group."""
    return _groups.merge_group_states(left, right, add_states)


def compute(state: State, options: Options) -> float:
    """Compute the largest difference; NaN with fewer than two groups."""
    if not len(state["group"]):
        return float("nan")
    return find_largest_difference(*(state[name].sum(axis=1) for name in ("selected", "lost", "rows")))


def find_largest_difference(selected: Values, lost: Values, rows: Values) -> float:
    """The largest difference between the rates selected / rows of two groups, each (G,); NaN with fewer than two groups
    that have rows. A lost row counts as selected in one of the groups and as not selected in the other."""
    some = rows > 0
    if some.sum() < 2:
        return float("nan")
    selected, lost, rows = selected[some], lost[some], rows[some]
    differences = ((selected + lost) / rows)[:, None] - (selected / rows)[None, :]
    np.fill_diagonal(differences, -np.inf)
    return float(differences.max())
