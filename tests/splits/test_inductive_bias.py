"""The inductive bias a task requires: against closed forms, draws, and the fraction of an enumerated space."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.splits.measures.inductive_bias import compute_bits, compute_cumulants, condition_process
from scipy.stats import chi2, norm


def test_of_one_row_the_bits_are_those_of_a_normal_interval():
    for bias, deviation, target in ((0.0, 1.0, 0.1), (0.7, 0.5, 0.04), (2.0, 0.3, 1.0)):
        edge = target**0.5
        chance = norm.cdf((edge - bias) / deviation) - norm.cdf((-edge - bias) / deviation)
        assert compute_bits(np.array([bias]), np.array([[deviation**2]]), target) == pytest.approx(
            -np.log2(chance), rel=1e-4
        )


def test_of_equal_rows_the_bits_are_those_of_a_chi_squared():
    bits = compute_bits(np.zeros(6), 0.3 * np.eye(6), 0.05)
    assert bits == pytest.approx(-chi2.logcdf(0.05 * 6 / 0.3, 6) / np.log(2), rel=1e-4)


def test_cumulants_are_those_of_drawn_errors():
    random = np.random.default_rng(0)
    factor, bias = random.normal(size=(4, 4)), random.normal(size=4)
    errors = ((bias + random.normal(size=(400_000, 4)) @ factor.T) ** 2).mean(1)
    expected = errors.mean(), errors.var(), ((errors - errors.mean()) ** 3).mean()
    assert compute_cumulants(bias, factor @ factor.T) == pytest.approx(expected, rel=0.05)


def test_the_bits_are_those_of_the_fraction_of_drawn_hypotheses():
    random = np.random.default_rng(1)
    train, queries = random.normal(size=(12, 2)), random.normal(size=(8, 2))
    truth = np.sin(train[:, 0]), np.sin(queries[:, 0])
    mean, covariance = condition_process(train, truth[0], queries, 1.0)
    factor = np.linalg.cholesky(covariance + 1e-9 * np.eye(8))
    errors = ((mean - truth[1] + random.normal(size=(400_000, 8)) @ factor.T) ** 2).mean(1)
    for quantile in (0.5, 0.1, 0.02):
        target = float(np.quantile(errors, quantile))
        assert compute_bits(mean - truth[1], covariance, target) == pytest.approx(-np.log2(quantile), rel=0.25)


def test_hypotheses_are_right_on_training_rows():
    random = np.random.default_rng(2)
    train, labels = random.normal(size=(10, 3)), random.normal(size=10)
    mean, covariance = condition_process(train, labels, train, 1.0)
    assert mean == pytest.approx(labels, abs=1e-3)
    assert np.abs(covariance).max() < 1e-3


def test_a_lower_target_error_needs_more_bits():
    bits = [compute_bits(np.full(5, 0.5), 0.2 * np.eye(5), target) for target in (1.0, 0.5, 0.1, 0.01)]
    assert bits == sorted(bits)
    assert bits[0] < 0.1


def test_a_tail_too_thin_for_a_float_still_has_finite_bits_that_grow():
    far = [compute_bits(np.full(50, bias), 0.01 * np.eye(50), 0.1) for bias in (2.0, 3.0, 6.0)]
    # Of equal rows with a bias the nearest point of the ball decides: about m (bias - sqrt(target))^2 / (2 s^2) nats.
    assert far == sorted(far)
    nats = [50 * (bias - 0.1**0.5) ** 2 / 0.02 for bias in (2.0, 3.0, 6.0)]
    assert np.array(far) * np.log(2) == pytest.approx(nats, rel=0.5)
