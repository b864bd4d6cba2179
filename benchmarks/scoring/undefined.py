"""Why has a metric no value on some rows, or none without some of them? The reason, for the place of the number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers
from ..model import Task
from ..statistics.sample import Replicates


def why_undefined(task: Task, truth: NDArray[Any], answers: Sequence[Answers], found: Replicates) -> str:
    """Of rows with these true labels (n,) and the answers of each seed to them. Empty where the value, and all those
    without a group of rows, are finite."""
    whole = bool(np.isfinite(found.per_seed).all())
    if whole and np.isfinite(found.without).all():
        return ""
    if len(truth) < 2:
        return "it was measured on a single row" if whole else "a single row does not define it"
    if not whole and (reason := _of_rows(task, truth, answers)):
        return reason
    return "not defined without some of the rows" if whole else "these rows and answers do not define it"


def _of_rows(task: Task, truth: NDArray[Any], answers: Sequence[Answers]) -> str:
    lost = int(np.max([(~one.answered).sum() for one in answers]))
    if lost and task.type == "regression":
        return f"{lost} of {len(truth)} rows have no answer"
    if task.type == "classification" and len(np.unique(truth)) == 1:
        return "all rows are of one class"
    if task.type != "regression":
        return ""
    if np.ptp(truth) == 0:
        return "the true values are all the same"
    if any(np.ptp(one.prediction) == 0 for one in answers):
        return "a model answers all rows alike"
    return "the answers are too large"
