"""The uncertainty at the ends of a metric's range: how much one additional row, wholly right or wholly wrong, moves it.

If every row is right, neither the jackknife nor a resample of the rows varies the metric; still its value is uncertain.
A mean of rows therefore counts one additional right and one additional wrong row (statistics/variance_estimate.py, as
Agresti and Coull, The American Statistician 1998, do with two of each). Any other metric does the same for each kind of
row that it distinguishes: each class, for balanced accuracy, macro-F1 or AUROC; each group, for a metric over groups.
For a class of n_k rows out of K classes, all right, that is 1 / (K (n_k + 1)) of balanced accuracy: much for a rare
class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ..answers import FAILED, Answers
from ..boxes import read_boxes, write_boxes
from ..metrics import Metric, State
from ..model import Columns, Task
from ..statistics.sample import BoundaryRows
from ..statistics.variance_estimate import has_finite_ends

KINDS, MOST_GROUPS = 25, 200
"""Maximum number of classes, and of groups, with an additional row each; if there are more, these are a sample."""

TRIED = 5
"""Number of rows tried if all rows are of one kind; they are a sample."""


@dataclass(frozen=True)
class BoundaryContext:
    """The rows from which additional rows are made: task, ids, true labels and fields. scored: the number of
    probabilities that a model gave for each row, None if it gave none."""

    task: Task
    row_ids: NDArray[np.uint64]
    truth: NDArray[Any]
    columns: Columns
    scored: int | None


def compute_boundary_rows(
    rows: BoundaryContext,
    metric: Metric,
    states: Sequence[Sequence[State]],
    groups: NDArray[np.str_] | None,
    clusters: int | None,
) -> BoundaryRows | None:
    """Return how much a wholly wrong and a wholly right row of each kind would move a metric of these rows.

    states: the metric's states for each seed; groups: the rows' groups, (n, K), for a metric over groups; clusters:
    their number, if they are random effects: a row then represents a cluster of average size. None for a metric without
    finite bounds."""
    if not has_finite_ends(metric.bounds) or not len(rows.truth):
        return None
    at, weight = _choose_rows(rows, groups)
    right = _make_right_answers(rows.truth[at], rows.task, rows.scored)
    wrong = _make_wrong_answers(rows.truth, at, rows.task, right, metric.needs == "prediction")
    times = len(rows.truth) / clusters if clusters else 1.0
    moved = np.zeros((len(states), 2, len(at)))
    for seed, parts in enumerate(states):
        full_state = reduce(metric.merge, parts)
        value = metric.compute(full_state)
        for end, answers in enumerate((wrong, right)):
            for number in range(len(at)):
                row = at[number : number + 1]
                columns: Columns = {name: values[row] for name, values in rows.columns.items()}
                added = metric.update(answers[number : number + 1], rows.truth[row], rows.task, columns)
                moved[seed, end, number] = metric.compute(metric.merge(full_state, added)) - value
    return BoundaryRows(np.nan_to_num(moved * times, nan=0.0, posinf=0.0, neginf=0.0), weight)


def _choose_rows(rows: BoundaryContext, groups: NDArray[np.str_] | None) -> tuple[NDArray[np.int64], float]:
    """Return the indices of the rows to try, and the number of kinds that each represents."""
    order = draw_permutation("ends", rows.row_ids)
    if groups is not None:
        kinds, most = np.unique(groups[order], axis=0, return_index=True)[1], MOST_GROUPS
    elif rows.task.type == "classification":
        kinds, most = np.unique(np.asarray(rows.truth)[order], return_index=True)[1], KINDS
    else:
        chosen = order[:TRIED]
        return chosen, 1 / len(chosen)
    first = np.sort(kinds)
    return order[first[:most]], len(first) / len(first[:most])


def _make_right_answers(truth: NDArray[Any], task: Task, scored: int | None) -> Answers:
    """Return wholly right predictions for n rows."""
    if task.type == "classification":
        classes = truth.astype(np.int64)
        return Answers.all_given(classes, None if scored is None else np.eye(scored, dtype=np.float32)[classes])
    if task.type == "multilabel":  # scores of both signs, within the range of float32
        likely = np.where(np.asarray(truth) > 0, np.inf, -np.inf).astype(np.float32)
        return Answers.all_given((likely > 0).sum(axis=1), likely)
    if task.type == "detection":
        return Answers.all_given(np.array([_make_certain_boxes(boxes) for boxes in truth.tolist()], object))
    return Answers.all_given(truth)


def _make_certain_boxes(boxes: str) -> str:
    """Return the true boxes as a prediction with full confidence."""
    true = read_boxes(boxes, scored=False)
    return write_boxes(np.column_stack([true.corners, np.ones(len(true)), true.classes]))


def _make_wrong_answers(truth: NDArray[Any], at: NDArray[np.int64], task: Task, right: Answers, named: bool) -> Answers:
    """Return wholly wrong predictions for the rows `at`: numbers mirrored at the middle of all true ones; another class
    if one is `named`, which costs that class as well; else no prediction."""
    if task.type == "regression":
        return Answers.all_given(truth.min() + truth.max() - truth[at])
    if task.type == "classification" and named and (task.classes or 0) > 1:
        return Answers.all_given((right.prediction + 1) % task.classes)
    status = np.full(len(at), FAILED, np.int8)
    return Answers(right.prediction, status, right.scores).fill_missing(truth[at], task)
