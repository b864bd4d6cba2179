"""What is kept of an entry's answers beside their scores: enough to say whether two entries are one (near_copies.py),
and what no answer at all would score (the floor)."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.answers import Answers
from ...benchmarks.metrics import Metric
from ...benchmarks.model import Task
from ...benchmarks.scoring.chance import chance
from ...benchmarks.scoring.measured import AnsweredRows
from ...benchmarks.statistics.near_copies import Given

COLUMNS = 16
"""Classes or labels whose scores are kept, spread over all."""

CONSTANTS = 5
"""Most frequent answers that are tried as the constant one."""


def given_of(rows: AnsweredRows, metric: Metric) -> Given:
    """What a run answered on some rows: classes and texts as codes, numbers, or, where the metric reads scores, their
    ranks among the rows, on which alone such metrics depend."""
    settled = [one.settled(rows.truth, rows.task) for one in rows.answers]
    if rows.task.type == "multilabel" or (metric.needs == "scores" and all(one.scores is not None for one in settled)):
        ranks = np.stack([_ranks(one.scores) for one in settled if one.scores is not None])
        return Given(ranks, np.ones(len(ranks)))
    if rows.task.type == "regression":
        numbers = np.stack([one.prediction for one in settled]).astype(np.float64)
        errors = numbers - rows.truth
        return Given(np.nan_to_num(numbers), np.sqrt(np.nanmean(errors**2, axis=1)))
    answers = np.stack([_codes(one.prediction, rows.task) for one in settled])
    return Given(answers, answers != _codes(rows.truth, rows.task))


def floor_of(rows: AnsweredRows, metric: Metric) -> float | None:
    """What the best constant answer scores on some rows, worked out from their labels: the most frequent class or text,
    the mean or the median number; by a metric of scores what guessing does. None where that is not defined."""
    if metric.needs == "scores" or rows.task.type == "multilabel":
        return chance(metric, rows.task)
    if rows.task.type == "regression":
        constants: list[Any] = [float(np.mean(rows.truth)), float(np.median(rows.truth))]
    else:
        kinds, counts = np.unique(rows.truth, return_counts=True)
        constants = [kinds[k] for k in np.argsort(-counts, kind="stable")[:CONSTANTS]]
    values = [_constant(rows, metric, one) for one in constants]
    known = [value for value in values if np.isfinite(value)]
    return None if not known else max(known) if metric.better == "higher" else min(known)


def _constant(rows: AnsweredRows, metric: Metric, value: Any) -> float:
    dtype = object if rows.task.in_text else np.float64 if rows.task.type == "regression" else np.int64
    answers = Answers.all_given(np.full(len(rows.truth), value, dtype))
    return AnsweredRows(rows.task, rows.row_ids, rows.truth, [answers], None, rows.columns).value(metric)


def _codes(values: NDArray[Any], task: Task) -> NDArray[np.int64]:
    """A whole number for each class or text; -1 for none."""
    if not task.in_text:
        return np.asarray(values).astype(np.int64)
    known: dict[Any, int] = {None: -1}
    for text in values.tolist():
        if text not in known:
            known[text] = int.from_bytes(blake2b(str(text).encode(), digest_size=4).digest(), "big")
    return np.array([known[text] for text in values.tolist()], np.int64)


def _ranks(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """The mid-ranks of each column of scores (n, K) among the rows, standardised, flat; 0 where all are equal."""
    count = scores.shape[1]
    # Of two classes the second's scores say all.
    chosen = np.unique(np.linspace(count - 1 if count == 2 else 0, count - 1, COLUMNS).astype(int))
    columns = []
    for k in chosen:
        _, where, times = np.unique(scores[:, k], return_inverse=True, return_counts=True)
        ranks = (np.cumsum(times) - (times - 1) / 2)[where.reshape(-1)]
        spread = ranks.std()
        columns.append((ranks - ranks.mean()) / spread if spread > 0 else np.zeros(len(ranks)))
    found: NDArray[np.float64] = np.concatenate(columns)
    return found
