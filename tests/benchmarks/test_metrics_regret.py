"""Regret of the worst group: held against every constant tried on every group, and what it says that accuracy does not."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from farshift import Answers
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from farshift.benchmarks.scoring.answered_rows import AnsweredRows
from farshift.benchmarks.statistics.interval import estimate_mean
from hypothesis import given
from metric_cases import Case, classified, measured

OPTIONS = {"by": ["place"], "of": ["one", "two"], "without": ["two, Other"]}
CLASSES = find_metric("worst_group_regret", options=OPTIONS)
NUMBERS = find_metric("worst_group_squared_regret", options=OPTIONS)
TWO = Task("classification", ("x",), "y", 2)


def groups_of(case: Case) -> list[np.ndarray]:
    """The rows of each group of `OPTIONS`, by masks."""
    position, item, two = (case.columns[name] for name in ("place", "one", "two"))
    masks = [(item >= 0.5) & (position == name) for name in ("Asia", "Europe", "Other")]
    masks += [(two >= 0.5) & (position == name) for name in ("Asia", "Europe")]
    return [mask for mask in masks if mask.any()]


def of_classes(groups: list, truth: list, prediction: list, task: Task = TWO) -> Case:
    answers = Answers.all_given(np.array(prediction))
    return Case(answers, np.array(truth), task, {"g": np.array(groups, object)})


@given(classified())
def test_regret_of_classes_is_that_against_every_constant_tried(case):
    given, truth = case.settled.prediction, case.truth
    regrets = [
        max(np.mean(given[mask] != truth[mask]) - np.mean(truth[mask] != item) for item in range(case.task.classes))
        for mask in groups_of(case)
    ]
    value = case.value(CLASSES)
    assert value == pytest.approx(max(regrets), abs=1e-12) if regrets else np.isnan(value)


@given(measured(losses=False))
def test_regret_of_numbers_is_that_against_the_mean_of_each_group(case):
    given, truth = case.answers.prediction, case.truth
    regrets = [np.mean((given[mask] - truth[mask]) ** 2) - truth[mask].var() for mask in groups_of(case)]
    value = case.value(NUMBERS)
    assert value == pytest.approx(max(regrets), abs=1e-12) if regrets else np.isnan(value)


def test_regret_of_numbers_does_not_cancel_far_from_zero():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 1 << 20, 4000) / (1 << 10)
    given = truth + rng.integers(-(1 << 8), 1 << 8, 4000) / (1 << 10)
    groups = np.array(["a", "b"], object)[np.arange(4000) % 2]
    task, measure = Task("regression", ("x",), "y"), find_metric("worst_group_squared_regret", options={"by": ["g"]})
    near, far = (Case(Answers.all_given(given + at), truth + at, task, {"g": groups}) for at in (0.0, 1e9))
    states = [far[shard].state(measure) for shard in np.array_split(np.arange(4000), 13)]
    assert measure.compute(reduce(measure.merge, states)) == pytest.approx(near.value(measure), rel=1e-10)


@given(measured())
def test_a_lost_number_of_a_group_leaves_no_value(case):
    row = next((int(np.flatnonzero(mask)[0]) for mask in groups_of(case)), None)
    assert row is None or np.isnan(case.losing(row).value(NUMBERS))


def rows_of(task: Task, groups: np.ndarray, truth: np.ndarray, given: np.ndarray) -> AnsweredRows:
    ids = np.arange(len(groups), dtype=np.uint64) * 977
    return AnsweredRows(task, ids, truth, [Answers.all_given(given)], None, {"g": groups})


def test_of_a_clear_worst_group_the_interval_of_its_regret_is_that_of_the_difference_of_errors():
    """Where the commonest class is clear, regret is a mean of rows: wrong, less other than the commonest."""
    task, groups = TWO, np.repeat(["a", "b", "c"], 400).astype(object)
    at = np.arange(1200) % 400
    truth = (at % 10 >= 7).astype(np.int64)
    given = np.where(at % 8 < np.repeat([5, 2, 1], 400), 1 - truth, truth)
    result = estimate_mean(
        rows_of(task, groups, truth, given).by(find_metric("worst_group_regret", options={"by": ["g"]}))
    )
    a = slice(0, 400)
    excess = (given[a] != truth[a]).astype(float) - truth[a]
    assert result.value == pytest.approx(excess.mean())
    assert result.low < result.value < result.high
    assert result.row_se == pytest.approx(excess.std() / 20, rel=0.35), (
        "32 groups of rows tell a standard error to 13 %"
    )


def test_regret_of_numbers_has_the_interval_of_its_rows():
    rng = np.random.default_rng(5)
    groups, truth = np.repeat(["a", "b"], 600).astype(object), rng.normal(size=1200)
    given = truth + rng.normal(size=1200) * np.repeat([1.5, 0.5], 600)
    task = Task("regression", ("x",), "y")
    result = estimate_mean(
        rows_of(task, groups, truth, given).by(find_metric("worst_group_squared_regret", options={"by": ["g"]}))
    )
    a = slice(0, 600)
    excess = (given[a] - truth[a]) ** 2 - (truth[a] - truth[a].mean()) ** 2
    assert result.value == pytest.approx(excess.mean())
    assert result.low < result.value < result.high
    assert result.row_se == pytest.approx(excess.std() / np.sqrt(600), rel=0.35)
