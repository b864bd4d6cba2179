"""The score of the best constant prediction: every seed of a ranked entry has to be better."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...benchmarks.answers import Answers
from ...benchmarks.metrics import Metric
from ...benchmarks.scoring.answered_rows import AnsweredRows
from ...benchmarks.scoring.chance import compute_chance

CONSTANTS = 5
"""Number of most frequent labels that are tried as the constant prediction."""


def compute_constant_baseline(rows: AnsweredRows, metric: Metric) -> float | None:
    """The score of the best constant prediction on some rows, computed from their labels: the most frequent class or
    text, the mean or median number; for a metric of scores, that of guessing. None if it is not defined."""
    if metric.needs == "scores" or rows.task.type == "multilabel":
        return compute_chance(metric, rows.task)
    if rows.task.type == "regression":
        constants: list[Any] = [float(np.mean(rows.truth)), float(np.median(rows.truth))]
    else:
        kinds, counts = np.unique(rows.truth, return_counts=True)
        constants = [kinds[k] for k in np.argsort(-counts, kind="stable")[:CONSTANTS]]
    values = [_score_constant(rows, metric, constant) for constant in constants]
    known = [value for value in values if np.isfinite(value)]
    return None if not known else max(known) if metric.better == "higher" else min(known)


def _score_constant(rows: AnsweredRows, metric: Metric, value: Any) -> float:
    dtype = object if rows.task.in_text else np.float64 if rows.task.type == "regression" else np.int64
    answers = Answers.all_given(np.full(len(rows.truth), value, dtype))
    return AnsweredRows(rows.task, rows.row_ids, rows.truth, [answers], None, rows.columns).value(metric)
