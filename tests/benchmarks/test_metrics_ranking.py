"""AUROC and average precision: held against scikit-learn, class by class, with ties, absent classes and lost rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from farshift import Answers
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import Case, classified
from sklearn import metrics as sklearn

AUROC, AP = find_metric("auroc"), find_metric("average_precision")


def macro(case: Case, area: Callable[[np.ndarray, np.ndarray], float], needs_others: bool) -> float:
    """The mean of an area over the ranked classes, from the scores of each in which a lost row loses all it can."""
    classes = [1] if case.task.classes == 2 else range(case.task.classes)
    result = []
    for item in classes:
        own = case.truth == item
        scores = np.where(case.answers.answered, case.answers.scores[:, item], np.where(own, -1, 2))
        if own.any() and not (needs_others and own.all()):
            result.append(area(own, scores))
    return np.mean(result) if result else np.nan


def precision_at_each_row(own: np.ndarray, scores: np.ndarray) -> float:
    """The mean over the rows of the class of the precision at their score: nothing for rows never retrieved."""
    precisions = [own[scores >= score].mean() if score >= 0 else 0.0 for score in scores[own]]
    return sum(precisions) / own.sum()


@given(classified())
def test_auroc_is_scikit_learns(case):
    assert case.value(AUROC) == pytest.approx(macro(case, sklearn.roc_auc_score, True), rel=1e-12, nan_ok=True)


@given(classified())
def test_average_precision_is_the_mean_precision_at_the_rows_of_the_class(case):
    expected = macro(case, precision_at_each_row, False)
    assert case.value(AP) == pytest.approx(expected, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_many_rows_of_many_classes_are_scikit_learns(classes):
    rng = np.random.default_rng(classes)
    truth = rng.integers(0, classes, 4000)
    weights = rng.random((4000, classes)) + (truth[:, None] == np.arange(classes))
    scores = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    task = Task("classification", ("x",), "y", classes)
    case = Case(Answers.all_given(scores.argmax(axis=1), scores), truth, task)
    for measure, oracle, options in (
        (AUROC, sklearn.roc_auc_score, {"multi_class": "ovr"}),
        (AP, sklearn.average_precision_score, {}),
    ):
        # scikit-learn holds the probabilities of many classes to a sum of one in their own precision.
        exact = scores.astype(np.float64) / scores.sum(axis=1, keepdims=True, dtype=np.float64)
        expected = oracle(truth, scores[:, 1]) if classes == 2 else oracle(truth, exact, average="macro", **options)
        assert case.value(measure) == pytest.approx(expected, abs=1e-6)


def test_scores_that_say_nothing_are_worth_chance():
    even = np.full((10, 2), 0.5, np.float32)
    truth = np.array([0] * 7 + [1] * 3)
    case = Case(Answers.all_given(np.zeros(10, int), even), truth, Task("classification", ("x",), "y", 2))
    assert case.value(AUROC) == 0.5
    assert case.value(AP) == pytest.approx(0.3)


def test_a_single_class_has_no_auroc():
    scores = np.tile(np.array([0.3, 0.7], np.float32), (4, 1))
    for truth in (np.zeros(4, int), np.ones(4, int)):
        case = Case(Answers.all_given(np.ones(4, int), scores), truth, Task("classification", ("x",), "y", 2))
        assert np.isnan(case.value(AUROC))


@given(classified(classes=2), st.data())
def test_a_negative_zero_is_a_zero(case, data):
    scores = case.answers.scores.copy()
    flipped = np.array(data.draw(st.lists(st.booleans(), min_size=len(case), max_size=len(case))))
    scores[(scores == 0) & flipped[:, None]] = -0.0
    other = replace(case, answers=replace(case.answers, scores=scores))
    for measure in (AUROC, AP):
        assert other.value(measure) == pytest.approx(case.value(measure), rel=1e-12, nan_ok=True)


@given(classified(), st.data())
def test_merging_shards_leaves_no_trace_in_the_bits(case, data):
    first = np.array(data.draw(st.lists(st.booleans(), min_size=len(case), max_size=len(case))))
    for measure in (AUROC, AP):
        merged = measure.compute(measure.merge(case[~first].state(measure), case[first].state(measure)))
        assert np.array_equal(merged, case.value(measure), equal_nan=True)
