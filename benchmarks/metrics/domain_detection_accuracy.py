"""Detection accuracy, averaged over domains: the mean over groups of the mean over their images.

Each domain counts once, regardless of its number of images: the metric of GlobalWheat-WILDS, whose domains are
acquisition sessions (Koh et al., "WILDS", ICML 2021). Checked against `eval` in wilds/datasets/globalwheat_dataset.py
of p-lambda/wilds. Only domains with images count; NaN if there are none.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ..answers import Answers
from ..model import Columns, Task
from . import _groups
from ._tally import State
from .detection_accuracy import chance as chance
from .detection_accuracy import per_row as _accuracy

VERSION = 1
TASKS = ("detection",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
OPTIONS = _groups.Groups
GROUPS = "drawn"

fields = _groups.list_group_fields
merge = _groups.add_group_sums


def update(answers: Answers, truth: NDArray[Any], task: Task, columns: Columns, options: _groups.Groups) -> State:
    """Sum the images' accuracies by domain (`_groups.sum_by_group`)."""
    return _groups.sum_by_group(
        _accuracy(answers, truth, task), _groups.find_memberships(options, truth, task, columns)
    )


def compute(state: State, options: _groups.Groups) -> float:
    """The mean of the domains' means; NaN if there are none."""
    return float(_groups.compute_group_means(state).mean()) if len(state["group"]) else float("nan")
