"""The reason why a metric has no value on some rows, or none with some of them left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers
from ..model import Task
from ..statistics.sample import Replicates


def explain_undefined(task: Task, truth: NDArray[Any], answers: Sequence[Answers], replicates: Replicates) -> str:
    """Return the reason, for rows with these true labels (n,) and each seed's predictions. Empty if the value, and all
    those without a group of rows, are finite."""
    is_defined = bool(np.isfinite(replicates.per_seed).all())
    if is_defined and np.isfinite(replicates.without).all():
        return ""
    if len(truth) < 2:
        return "it was measured on a single row" if is_defined else "a single row does not define it"
    if not is_defined and (reason := _explain_rows(task, truth, answers)):
        return reason
    return "not defined without some of the rows" if is_defined else "these rows and answers do not define it"


def _explain_rows(task: Task, truth: NDArray[Any], answers: Sequence[Answers]) -> str:
    unanswered = int(np.max([(~seed_answers.answered).sum() for seed_answers in answers]))
    if unanswered and task.type == "regression":
        return f"{unanswered} of {len(truth)} rows have no answer"
    if task.type == "classification" and len(np.unique(truth)) == 1:
        return "all rows are of one class"
    if task.type != "regression":
        return ""
    if np.ptp(truth) == 0:
        return "the true values are all the same"
    if any(np.ptp(seed_answers.prediction) == 0 for seed_answers in answers):
        return "a model answers all rows alike"
    return "the answers are too large"
