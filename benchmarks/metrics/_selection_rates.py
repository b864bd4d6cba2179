"""How often a class is predicted in each group: counts for metrics of fairness, and the largest difference of rates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ...core.errors import BadDefinition
from . import _groups
from ._base import Answers, Columns, State, Task, Values


class Options(_groups.Groups):
    """`positive`: the class whose rate of predictions is compared."""

    positive: int = Field(1, ge=0)


def count_selected(answers: Answers, truth: Values, task: Task, columns: Columns, options: Options) -> State:
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
