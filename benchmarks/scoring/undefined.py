"""Why has a metric no value on some rows, or none without some of them? The reason, for the place of the number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..statistics.sample import Replicates

if TYPE_CHECKING:
    from .measured import AnsweredRows


def why_undefined(rows: AnsweredRows, found: Replicates) -> str:
    """Empty where the value and all those without a group of rows are finite."""
    whole = bool(np.isfinite(found.per_seed).all())
    if whole and np.isfinite(found.without).all():
        return ""
    if len(rows.truth) < 2:
        return "it was measured on a single row" if whole else "a single row does not define it"
    if not whole and (reason := _of_rows(rows)):
        return reason
    return "not defined without some of the rows" if whole else "these rows and answers do not define it"


def _of_rows(rows: AnsweredRows) -> str:
    lost = int(np.max([(~one.answered).sum() for one in rows.answers]))
    if lost and rows.task.type == "regression":
        return f"{lost} of {len(rows.truth)} rows have no answer"
    if rows.task.type == "classification" and len(np.unique(rows.truth)) == 1:
        return "all rows are of one class"
    if rows.task.type != "regression":
        return ""
    if np.ptp(rows.truth) == 0:
        return "the true values are all the same"
    if any(np.ptp(one.prediction) == 0 for one in rows.answers):
        return "a model answers all rows alike"
    return "the answers are too large"
