"""A run's predictions, checked against the benchmark row by row, for any metric on any rows.

The uncertainty at the ends of a metric's range: if every row is right, neither the jackknife nor a resample of the rows
varies the metric; still its value is uncertain. A mean of rows therefore counts one additional right and one additional
wrong row (statistics/variance_estimate.py, as Agresti and Coull, The American Statistician 1998, do with two of each).
So does any other metric; the row is of a random kind (a class; a group, for a metric over groups), each as likely, and
its variance is the mean squared change (`_compute_boundary_changes`). A row of each kind would be as many as there are
kinds: for AUROC over 50 rare classes, intervals are then four times too wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadRun
from ...loaders.part import Part
from ..answers import FAILED, Answers
from ..benchmark import Benchmark
from ..metrics import NO_COLUMNS, Metric, State
from ..model import Columns, Task
from ..runs.predictions import read_answers
from ..runs.run import RunLike
from ..selection import Rule, SelectionData
from ..statistics.clusters import Clustering, Codes, encode_clusters, make_clustering
from ..statistics.sample import (
    HALVED,
    Replicates,
    RowScores,
    Sample,
    count_jackknife_groups,
    deal_rows,
    deal_within_strata,
    make_half_replicates,
    make_replicates,
)
from ..statistics.variance_estimate import has_finite_ends
from .completeness import find_completeness_problems, split_blocks

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = 25
"""Maximum number of classes or groups whose rows are tried; if there are more, these are a sample."""

Chosen = dict[int, str]
"""The selected candidate of each seed."""


@dataclass(frozen=True)
class AnsweredRows:
    """Rows with their true labels, the predictions of each seed, their clusters, and the fields that metrics read
    (`columns`, by name)."""

    task: Task
    row_ids: NDArray[np.uint64]
    truth: NDArray[Any]
    answers: list[Answers]
    clusters: Codes | None = None
    columns: Columns = field(default_factory=dict)

    def select(self, rows: NDArray[Any]) -> AnsweredRows:
        """Select rows by indices or a mask."""
        clusters = None if self.clusters is None else encode_clusters(self.clusters[rows])
        columns = {name: values[rows] for name, values in self.columns.items()}
        answers = [seed_answers[rows] for seed_answers in self.answers]
        return AnsweredRows(self.task, self.row_ids[rows], self.truth[rows], answers, clusters, columns)

    @property
    def has_scores(self) -> bool:
        return all(seed_answers.scores is not None for seed_answers in self.answers)

    @cached_property
    def _settled(self) -> list[Answers]:
        return [seed_answers.fill_missing(self.truth, self.task) for seed_answers in self.answers]

    def by(self, metric: Metric) -> Sample:
        """Return the metric on these rows, with all that its interval needs."""
        if metric.per_row is not None:
            rows = [metric.per_row(seed_answers, self.truth, self.task) for seed_answers in self._settled]
            return RowScores(np.stack(rows), metric.bounds, self.clusters)
        if metric.groups is None:
            return self._replicates(metric, self.clusters, None)
        groups = metric.memberships(self.truth, self.task, self.columns)
        counted = (groups != "").any(axis=1)
        if not counted.any():
            none = np.full((len(self.answers), 1), np.nan)
            sizes, why = np.array([len(counted)]), "no row is in a group that counts"
            return Replicates(none[:, 0].tolist(), none, sizes, metric.bounds, why=why)
        known = self if counted.all() else self.select(counted)
        return known._over_groups(metric, groups[counted])

    def _over_groups(self, metric: Metric, groups: NDArray[np.str_]) -> Replicates:
        """Replicates of a metric over groups; each row is in one or more of the `groups`, (n, K)."""
        if metric.groups == "drawn":
            return self._replicates(metric, encode_clusters(groups[:, 0]), None, groups)
        strata = np.unique(groups, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
        is_random = make_clustering(self.clusters).treated == "random" and _has_enough_clusters(groups, self.clusters)
        return self._replicates(metric, self.clusters if is_random else None, None if is_random else strata, groups)

    def _replicates(
        self, metric: Metric, clusters: Codes | None, strata: Codes | None, named: NDArray[np.str_] | None = None
    ) -> Replicates:
        """Replicates of a statistic, by leaving out whole clusters, or single rows within each of the `strata`."""
        most = count_jackknife_groups(self.row_ids, clusters)
        count = most if metric.smooth else min(HALVED, 1 << max(most.bit_length() - 1, 0))
        if strata is None:
            groups, of = deal_rows(self.row_ids, clusters, count), make_clustering(clusters)
        else:
            groups, of = deal_within_strata(self.row_ids, strata, count), Clustering(len(np.unique(strata)), "fixed")
        sizes = np.bincount(groups)
        members = [np.flatnonzero(groups == group) for group in range(len(sizes))]
        columns = [{name: values[rows] for name, values in self.columns.items()} for rows in members]
        with np.errstate(over="ignore"):  # sums that overflow are infinite, and their estimate undefined
            states = [
                [
                    metric.update(answers[rows], self.truth[rows], self.task, beside)
                    for rows, beside in zip(members, columns, strict=True)
                ]
                for answers in self._settled
            ]
            how = make_replicates if metric.smooth else make_half_replicates
            replicates_sample = how(states, metric.merge, metric.compute, sizes, metric.bounds, of)
            ends = _compute_boundary_changes(self, metric, states, named)
            return replace(
                replicates_sample,
                ends=ends,
                why=explain_undefined(self.task, self.truth, self.answers, replicates_sample),
            )

    def states(self, metric: Metric) -> list[State]:
        """Return the metric's state for each seed's predictions."""
        return [metric.update(seed_answers, self.truth, self.task, self.columns) for seed_answers in self._settled]

    def value(self, metric: Metric) -> float:
        """Return the metric of a single seed's predictions."""
        return metric.value(self._settled[0], self.truth, self.task, self.columns)


def _has_enough_clusters(groups: NDArray[np.str_], clusters: Codes | None) -> bool:
    """Whether the rows of each group of a metric, `groups` (n, K), come from enough clusters to generalise to
    others."""
    assert clusters is not None
    names = sorted(set(groups[groups != ""].tolist()))
    return all(make_clustering(clusters[(groups == name).any(axis=1)]).treated == "random" for name in names)


def get_cluster_names(part: Part, kind: str) -> NDArray[Any] | None:
    """Return the cluster of each row, by name, shape (n,): the split's group; None if there is none.

    Groups that coincide with levels of severity (lengths, depths) are not clusters but what a split of this `kind`
    varies: other rows would have the same levels. Domains are always clusters."""
    groups, severity = part.row_metadata.get("group"), part.row_metadata.get("severity")
    if groups is None or severity is None or kind == "domain":
        return groups
    names, levels = (np.unique(values, return_inverse=True)[1] for values in (groups, severity))
    combinations = len(np.unique(names * len(part) + levels))
    return None if combinations == names.max() + 1 == levels.max() + 1 else groups


class RunPredictions:
    """The predictions of each candidate and seed of a run, checked to be exactly the required rows."""

    def __init__(self, benchmark: Benchmark, predictions: pa.Table, card: RunLike) -> None:
        self.benchmark, self.seeds, self.candidates, self.finals = benchmark, card.seeds, card.candidates, card.finals
        self.blocks_of = split_blocks(predictions)
        if problems := find_completeness_problems(benchmark, self.blocks_of, card):
            remainder = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
            raise BadRun(f"{problems[0]}{remainder}")

    def has(self, part: str, candidate: str) -> bool:
        """Whether a candidate predicted a part (for all seeds, or for none)."""
        return (self.seeds[0], part, candidate) in self.blocks_of

    def _answers(self, seed: int, part: str, candidate: str, row_ids: NDArray[np.uint64]) -> Answers:
        """Return the predictions for the rows of these ids, in their order."""
        table = self.blocks_of[seed, part, candidate]
        answers = read_answers(table, self.benchmark.task)
        ids = table["row_id"].to_numpy()
        return answers if np.array_equal(ids, row_ids) else answers[np.searchsorted(ids, row_ids)]

    def view(self, name: str, chosen: Chosen) -> AnsweredRows:
        """Return a view's rows with the predictions of each seed's selected candidate."""
        part, truth = self.benchmark.view(name)
        return self.rows(self.benchmark.definition.views[name].part, part, truth, chosen)

    def rows(self, name: str, part: Part, labels: NDArray[Any], chosen: Chosen) -> AnsweredRows:
        """Return the rows `part`, all or some of the part `name`, with `labels` (n,) and the predictions of each seed's
        selected candidate."""
        answers = [self._answers(seed, name, chosen[seed], part.row_ids) for seed in self.seeds]
        clusters = encode_clusters(get_cluster_names(part, self.benchmark.kind))
        columns = part.numpy(self.benchmark.metric_fields)
        return AnsweredRows(self.benchmark.task, part.row_ids, labels, answers, clusters, columns)

    def choose(self, rule: Rule) -> Chosen:
        """Select each seed's candidate by a rule: the best on its selection data by the primary metric; the first of
        equals."""
        ballot = rule.ballot(self.benchmark)
        if ballot is None:
            return dict.fromkeys(self.seeds, self.finals[0])
        part = self.part_of(rule)
        columns = self._columns(ballot.row_ids)
        eligible = [candidate for candidate in self.candidates if self.has(part, candidate)]
        if rule.finals:
            eligible = [candidate for candidate in eligible if candidate in self.finals]
        return {
            seed: max(eligible, key=lambda name: self._worth(seed, part, name, ballot, columns)) for seed in self.seeds
        }

    def _columns(self, row_ids: NDArray[np.uint64]) -> Columns:
        """Return the fields that metrics read, for the rows of these ids (n,), which are in a single part."""
        names = self.benchmark.metric_fields
        if not names:
            return NO_COLUMNS
        for part_name in sorted({"train", *self.benchmark.predicted_parts}):
            part = self.benchmark.part(part_name)
            ids = part.row_ids
            at = np.minimum(np.searchsorted(ids, row_ids), len(ids) - 1)
            if np.array_equal(ids[at], row_ids):
                return part.select(at).numpy(names)
        raise BadRun(f"{self.benchmark.name}: rows for selection are in no part, and lack {names[0]!r}")

    def part_of(self, rule: Rule) -> str:
        """Return the part whose predictions a rule uses (a rule may name a view)."""
        view = self.benchmark.definition.views.get(rule.part)
        return rule.part if view is None else view.part

    def _worth(self, seed: int, part: str, candidate: str, ballot: SelectionData, columns: Columns) -> float:
        """Return a candidate's selection score: higher is better for every metric; undefined is worst."""
        metric = self.benchmark.metrics[0]
        answers = self._answers(seed, part, candidate, ballot.row_ids)
        rows = AnsweredRows(self.benchmark.task, ballot.row_ids, ballot.labels, [answers], None, columns)
        if ballot.groups is None:
            value = rows.value(metric)
        else:
            groups = sorted(set(ballot.groups.tolist()))
            value = float(np.mean([rows.select(ballot.groups == group).value(metric) for group in groups]))
        if np.isnan(value):
            return -np.inf
        return value if metric.better == "higher" else -value


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


def _compute_boundary_changes(
    rows: AnsweredRows, metric: Metric, states: Sequence[Sequence[State]], groups: NDArray[np.str_] | None
) -> NDArray[np.float64] | None:
    """Return how much one more wholly wrong, and one more wholly right row of each kind would change a metric of these
    rows, (seeds, 2, kinds); as much as a mean, if they are not of classes. None for a metric without finite bounds.

    states: the metric's states for each seed; groups: the rows' groups, (n, K), for a metric over groups."""
    count = len(rows.truth)
    if not has_finite_ends(metric.bounds) or not count:
        return None
    full_states = [reduce(metric.merge, parts) for parts in states]
    values = np.array([metric.compute(state) for state in full_states])[:, None, None]
    if rows.task.type != "classification":
        toward: NDArray[np.float64] = np.nan_to_num((np.array(metric.bounds)[None, :, None] - values) / (count + 1))
        return toward
    order = draw_permutation("ends", rows.row_ids)
    kinds = rows.truth[order, None] if groups is None else groups[order]
    at = order[np.sort(np.unique(kinds, axis=0, return_index=True)[1])[:KINDS]]
    moved = np.zeros((len(states), 2, len(at)))
    for end, answers in enumerate(_make_end_answers(rows, at, metric.needs == "prediction")):
        for number in range(len(at)):
            row = at[number : number + 1]
            columns: Columns = {name: column[row] for name, column in rows.columns.items()}
            added = metric.update(answers[number : number + 1], rows.truth[row], rows.task, columns)
            moved[:, end, number] = [metric.compute(metric.merge(state, added)) for state in full_states]
    changes: NDArray[np.float64] = np.nan_to_num(moved - values, nan=0.0, posinf=0.0, neginf=0.0)
    return changes


def _make_end_answers(rows: AnsweredRows, at: NDArray[np.int64], named: bool) -> tuple[Answers, Answers]:
    """Return wholly wrong and wholly right predictions for the rows `at` of classes. A wrong one is another class if
    one is `named`, which costs that class as well; else there is no prediction."""
    classes, given = rows.truth[at].astype(np.int64), rows.answers[0].scores
    scores = None if given is None else np.eye(given.shape[1], dtype=np.float32)[classes]
    right = Answers.all_given(classes, scores)
    if named and rows.task.classes is not None and rows.task.classes > 1:
        return Answers.all_given((classes + 1) % rows.task.classes), right
    status = np.full(len(at), FAILED, np.int8)
    return Answers(classes, status, scores).fill_missing(classes, rows.task), right
