"""Log loss, Brier score and calibration error: held against scikit-learn and against the formulas, row by row."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import log

import numpy as np
import pytest
from farshift import Answers
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import Case, classified
from sklearn import metrics as sklearn

WORST_NLL = -log(np.finfo(np.float32).eps)
NLL, BRIER, ECE = find_metric("nll"), find_metric("brier"), find_metric("ece")


def binary(confidence: list[float], right: list[bool]) -> Case:
    """Answers in class 1 with these probabilities."""
    sure = np.array(confidence, np.float32)
    answers = Answers.all_given(np.ones(len(sure), int), np.stack([1 - sure, sure], axis=1))
    return Case(answers, np.array(right).astype(int), Task("classification", ("x",), "y", 2))


@given(classified())
def test_nll_is_scikit_learns_log_loss(case):
    expected = sklearn.log_loss(case.truth, case.settled.scores, labels=np.arange(case.task.classes))
    # scikit-learn takes certainty for one minus epsilon.
    assert case.value(NLL) == pytest.approx(expected, rel=1e-6, abs=3e-7)


def test_certainty_costs_nothing_where_it_is_right_and_a_bounded_amount_where_it_is_wrong():
    right, wrong = binary([1.0], [True]), binary([1.0], [False])
    assert right.value(NLL) == 0
    assert wrong.value(NLL) == WORST_NLL == pytest.approx(23 * log(2))


@given(classified())
def test_the_brier_score_sums_squares_over_all_classes(case):
    rows = [
        sum((float(p) - (k == true)) ** 2 for k, p in enumerate(row)) if answered else 2.0
        for row, true, answered in zip(case.answers.scores, case.truth, case.answers.answered, strict=True)
    ]
    assert BRIER.per_row(case.settled, case.truth, case.task) == pytest.approx(rows, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("measure", [NLL, BRIER, ECE], ids=lambda measure: measure.name)
def test_probabilities_that_sum_to_a_little_more_than_one_stay_within_the_bounds(measure):
    task = Task("classification", ("x",), "y", 2)
    worst = WORST_NLL if measure is NLL else measure.bounds[1]
    for true, best in ((0, measure.bounds[0]), (1, worst)):
        scores = np.array([[1.0009, 0.0]], np.float32)
        case = Case(Answers.all_given(np.array([0]), scores), np.array([true]), task)
        assert case.value(measure) == pytest.approx(best, abs=1e-6)
        assert measure.bounds[0] <= case.value(measure) <= worst


def guo(case: Case) -> float:
    """Eq. 3 of Guo et al. by its words, in fractions; lost rows are a bin of their own."""
    bins: dict[int, list[tuple[Fraction, bool]]] = {}
    for row, true, answered in zip(case.answers.scores, case.truth, case.answers.answered, strict=True):
        confidence = Fraction(float(row.max()))
        item = next(b for b in range(1, 16) if Fraction(b - 1, 15) < confidence <= Fraction(b, 15))
        entry = (item, (confidence, row.argmax() == true)) if answered else (0, (Fraction(1), False))
        bins.setdefault(entry[0], []).append(entry[1])
    gaps = [abs(sum(hit for _, hit in rows) - sum(confidence for confidence, _ in rows)) for rows in bins.values()]
    return float(sum(gaps) / len(case))


@given(classified())
def test_ece_is_that_of_guo_et_al(case):
    assert case.value(ECE) == pytest.approx(guo(case), rel=1e-12, abs=1e-15)


@given(st.lists(st.tuples(st.integers(7, 15), st.integers(-2, 2), st.booleans()), min_size=1, max_size=30))
def test_a_confidence_at_the_edge_of_a_bin_is_placed_by_its_exact_value(rows):
    """Float32's nearest values to the edges k/15, and their neighbours."""
    near = np.array([edge / 15 for edge, _, _ in rows], np.float32)
    steps = np.array([step for _, step, _ in rows])
    for _ in range(2):
        near = np.where(steps > 0, np.nextafter(near, np.float32(1)), near)
        near = np.where(steps < 0, np.nextafter(near, np.float32(0)), near)
        steps -= np.sign(steps)
    case = binary(np.maximum(near, np.float32(0.5)).tolist(), [right for _, _, right in rows])
    assert case.value(ECE) == pytest.approx(guo(case), rel=1e-12, abs=1e-15)


def test_confidence_that_matches_accuracy_has_no_error():
    assert binary([0.75] * 4, [True, True, True, False]).value(ECE) == 0
    assert binary([0.75] * 4, [True] * 4).value(ECE) == pytest.approx(0.25)
    assert binary([0.75] * 4, [False] * 4).value(ECE) == pytest.approx(0.75)


def test_a_lost_row_does_not_make_up_for_too_little_confidence():
    case = binary([0.95] * 19 + [1.0], [True] * 20)
    assert case.losing(19).value(ECE) == pytest.approx((19 * 0.05 + 1) / 20)


def test_ece_judges_the_class_of_most_probability():
    case = binary([0.9] * 10, [True] * 10)
    named_otherwise = replace(case, answers=replace(case.answers, prediction=np.zeros(10, int)))
    assert named_otherwise.value(ECE) == case.value(ECE)
