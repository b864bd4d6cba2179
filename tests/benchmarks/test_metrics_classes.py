"""Metrics of named classes: held against scikit-learn, where a lost row is a class of its own that is not a label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from farshift import Answers
from farshift.benchmarks.answers import ABSTAINED, FAILED
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from hypothesis import given
from metric_cases import Case, classified
from sklearn import metrics as sklearn

ACCURACY, BALANCED, MACRO_F1 = find_metric("accuracy"), find_metric("balanced_accuracy"), find_metric("macro_f1")


def of(truth: list[int], prediction: list[int], classes: int = 3) -> Case:
    return Case(Answers.all_given(np.array(prediction)), np.array(truth), Task("classification", ("x",), "y", classes))


@given(classified())
def test_accuracy_is_scikit_learns(case):
    expected = sklearn.accuracy_score(case.truth, case.settled.prediction)
    assert case.value(ACCURACY) == pytest.approx(expected, rel=1e-12)


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true", "ignore:A single label was found")
@given(classified())
def test_balanced_accuracy_is_scikit_learns(case):
    expected = sklearn.balanced_accuracy_score(case.truth, case.settled.prediction)
    assert case.value(BALANCED) == pytest.approx(expected, rel=1e-12)


@given(classified())
def test_macro_f1_is_scikit_learns(case):
    given = case.settled.prediction
    occurring = np.setdiff1d(np.union1d(case.truth, given), [-1])
    expected = sklearn.f1_score(case.truth, given, labels=occurring, average="macro", zero_division=0)
    assert case.value(MACRO_F1) == pytest.approx(expected, rel=1e-12)


def test_a_row_left_open_costs_recall_alone():
    left_open = of([0, 0, 1, 1], [0, 0, 1, 0])
    left_open = replace(left_open, answers=replace(left_open.answers, status=np.array([0, 0, 0, ABSTAINED], np.int8)))
    assert left_open.value(MACRO_F1) == pytest.approx((1 + 2 / 3) / 2)
    assert left_open.losing(3).value(MACRO_F1) == left_open.value(MACRO_F1)


def test_classes_may_be_held_in_few_bits():
    case = of([0, 1, 2, 2, 1], [0, 1, 1, 2, 0])
    case = replace(case, answers=replace(case.answers, status=np.array([0, 0, 0, 0, FAILED], np.int8)))
    narrow = replace(case, truth=case.truth.astype(np.uint8))
    for measure in (ACCURACY, BALANCED, MACRO_F1):
        assert narrow.value(measure) == case.value(measure)
