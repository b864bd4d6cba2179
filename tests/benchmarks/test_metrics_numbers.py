"""Metrics of numbers: held against scikit-learn and SciPy, far from zero, and where they are not defined."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from farshift import Answers
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import Case, measured
from scipy import stats
from sklearn import metrics as sklearn

RMSE, PEARSON, SPEARMAN = find_metric("rmse"), find_metric("pearson"), find_metric("spearman")


def of(prediction: list[float] | np.ndarray, truth: list[float] | np.ndarray) -> Case:
    return Case(Answers.all_given(np.array(prediction, float)), np.array(truth), Task("regression", ("x",), "y"))


@given(measured(losses=False))
def test_rmse_is_scikit_learns(case):
    expected = sklearn.root_mean_squared_error(case.truth, case.answers.prediction)
    assert case.value(RMSE) == pytest.approx(expected, rel=1e-12)


@given(measured(losses=False))
def test_pearsons_correlation_is_scipys(case):
    prediction, truth = case.answers.prediction, case.truth
    if np.ptp(prediction) == 0 or np.ptp(truth) == 0:
        assert np.isnan(case.value(PEARSON))
    else:
        assert case.value(PEARSON) == pytest.approx(stats.pearsonr(prediction, truth)[0], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e9])
def test_correlation_does_not_cancel_far_from_zero(offset):
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 1 << 20, 5000) / (1 << 10)
    prediction = truth + rng.integers(0, 1 << 20, 5000) / (1 << 10)
    near, far = of(prediction, truth), of(prediction + offset, truth + offset)
    states = [far[shard].state(PEARSON) for shard in np.array_split(np.arange(5000), 13)]
    assert PEARSON.compute(reduce(PEARSON.merge, states)) == pytest.approx(near.value(PEARSON), rel=1e-10)
    assert near.value(PEARSON) == pytest.approx(stats.pearsonr(prediction, truth)[0], rel=1e-12)


@given(st.floats(-1e6, 1e6), st.lists(st.integers(0, 3), min_size=2, max_size=40))
def test_a_constant_has_no_correlation_however_it_was_sharded(value, shard_of):
    shard_of = np.array(shard_of)
    case = of(np.full(len(shard_of), value), np.arange(len(shard_of)))
    states = [case[shard_of == shard].state(PEARSON) for shard in range(4)]
    assert np.isnan(PEARSON.compute(reduce(PEARSON.merge, states)))


def test_rounding_never_leads_past_a_whole_correlation():
    for seed in range(100):
        truth = np.random.default_rng(seed).random(5)
        assert -1 <= of(-truth, truth).value(PEARSON) < of(truth, truth).value(PEARSON) <= 1


@pytest.mark.parametrize("measure", [RMSE, PEARSON, SPEARMAN], ids=lambda measure: measure.name)
@given(measured())
def test_a_lost_number_leaves_no_value(measure, case):
    assert np.isnan(case.losing(len(case) - 1).value(measure))


def test_whole_numbers_may_be_the_truth():
    truth = np.array([0, 200, 255], np.uint8)
    prediction = [10.0, 190.0, 255.0]
    assert of(prediction, truth).value(RMSE) == pytest.approx(np.sqrt(200 / 3))
    assert of(prediction, truth).value(PEARSON) == pytest.approx(stats.pearsonr(prediction, truth)[0])


def test_numbers_too_large_to_square_are_infinitely_wrong_and_have_no_correlation():
    case = of([1e200, 2e200, 0.0], [1.0, 2.0, 3.0])
    assert case.value(RMSE) == np.inf
    assert np.isnan(case.value(PEARSON))


@given(measured(losses=False), st.integers(0, 20))
def test_spearmans_correlation_is_scipys_with_ties_and_however_it_was_sharded(case, cut):
    prediction, truth = case.answers.prediction, case.truth
    rows = np.arange(len(case))
    left, right = (case[part].state(SPEARMAN) for part in (rows < cut, rows >= cut))
    value = SPEARMAN.compute(SPEARMAN.merge(right, left))
    assert value == case.value(SPEARMAN) or np.isnan(value)
    if np.ptp(prediction) == 0 or np.ptp(truth) == 0:
        assert np.isnan(value)
    else:
        assert value == pytest.approx(stats.spearmanr(prediction, truth)[0], rel=1e-12, abs=1e-12)
