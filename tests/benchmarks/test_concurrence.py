"""Kendall's tau-b of two benchmarks: held against SciPy, and silent where entries are few."""

from __future__ import annotations

from itertools import pairwise
from math import pi, sqrt

import numpy as np
import pytest
from farshift.benchmarks.statistics.best_of import compute_common_correlation, compute_expected_maximum
from farshift.benchmarks.statistics.concurrence import compute_concurrence, compute_concurrences, compute_tau_interval
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=7, max_size=40))
def test_tau_b_is_scipys_with_any_ties(pairs):
    x, y = np.array(pairs, float).T
    tau, low, high = compute_tau_interval(x, y, 50)
    expected = stats.kendalltau(x, y).statistic
    if np.isnan(expected):
        assert np.isnan([tau, low, high]).all()
    else:
        assert tau == pytest.approx(expected, abs=1e-12)
        assert -1 <= low < high <= 1
        assert low <= tau <= high


def scores(entries: int, seed: int = 0) -> dict[str, dict[str, float]]:
    values = np.random.default_rng(seed).random((3, entries))
    return {f"b{n}": {f"e{k:02d}": value for k, value in enumerate(row)} for n, row in enumerate(values.tolist())}


def test_six_entries_say_so_in_words_and_seven_are_enough():
    (first, *_) = compute_concurrences(scores(6))
    assert first.to_dict() == {
        "left": "b0",
        "right": "b1",
        "entries": 6,
        "n/a": "6 common entries: more than 6 needed",
    }
    assert {"tau", "low", "high"} <= set(compute_concurrence("b0", "b1", scores(7)).to_dict())


def test_only_entries_that_both_have_are_ordered():
    both = scores(9)
    more = {name: dict(result) for name, result in both.items()}
    more["b0"]["only here"] = 0.5
    more["b1"] = dict(reversed(more["b1"].items()))
    assert compute_concurrences(more) == compute_concurrences(both)
    assert [(item.left, item.right) for item in compute_concurrences(both)] == [
        ("b0", "b1"),
        ("b0", "b2"),
        ("b1", "b2"),
    ]


def test_entries_that_all_score_alike_have_no_tau():
    flat = scores(8) | {"b1": dict.fromkeys(scores(8)["b1"], 0.5)}
    assert compute_concurrence("b0", "b1", flat).to_dict()["n/a"] == "all entries have the same score on one benchmark"


def test_entries_that_are_ordered_quite_alike_keep_a_width():
    steps = np.arange(7.0)
    tau, low, high = compute_tau_interval(steps, steps**3)
    assert (tau, high) == (1.0, 1.0)
    assert 0.4 < low < 0.8
    assert compute_tau_interval(steps, -steps)[1:] == pytest.approx((-1.0, -low))


# Harter, Biometrika 1961, table 1: the expected largest of n standard normal numbers.
LARGEST = {2: 0.56419, 3: 0.84628, 5: 1.16296, 10: 1.53875, 20: 1.86748, 50: 2.24907, 100: 2.50759}


@pytest.mark.parametrize(("attempts", "expected"), LARGEST.items())
def test_the_largest_of_equal_normal_numbers_is_that_of_the_tables(attempts, expected):
    assert compute_expected_maximum([1.0] * attempts, 0.0) == pytest.approx(expected, abs=6e-6)
    assert compute_expected_maximum([0.02] * attempts, 0.36) == pytest.approx(0.02 * 0.8 * expected, abs=1e-6)


def test_of_two_it_is_known_for_any_errors_and_correlation():
    for left, right, r in ((1, 2, 0.5), (0.3, 3, 0.9), (1, 1, 0.2), (0, 1, 0.0), (1, 2, 1.0)):
        variance = left**2 + right**2 - 2 * r * left * right
        assert compute_expected_maximum([left, right], r) == pytest.approx(
            sqrt(variance / (2 * pi)), abs=3e-4 * max(left, right)
        )


@pytest.mark.parametrize(("errors", "correlation"), [((1, 2, 0.5), 0.5), ((1, 2, 3, 3, 3), 0.2), ((0.1, 0.1, 1), 0.95)])
def test_of_unequal_attempts_it_is_what_simulation_gives(errors, correlation):
    z = np.random.default_rng(0).standard_normal((400_000, len(errors) + 1))
    drawn = (np.array(errors) * (sqrt(correlation) * z[:, :1] + sqrt(1 - correlation) * z[:, 1:])).max(axis=1)
    assert compute_expected_maximum(errors, correlation) == pytest.approx(
        drawn.mean(), abs=5 * drawn.std() / sqrt(len(drawn))
    )


@given(st.lists(st.floats(0, 10), min_size=1, max_size=6), st.floats(0, 0.99), st.randoms(use_true_random=False))
def test_independent_attempts_are_the_harsher_bound_and_order_is_of_no_matter(errors, correlation, shuffler):
    optimism = compute_expected_maximum(errors, correlation)
    assert -1e-9 <= optimism <= compute_expected_maximum(errors, 0.0) + 2e-3 * max(errors)
    shuffled = list(errors)
    shuffler.shuffle(shuffled)
    assert compute_expected_maximum(shuffled, correlation) == pytest.approx(optimism, abs=1e-6)


def test_more_attempts_are_more_optimistic_and_one_is_not():
    assert compute_expected_maximum([0.03], 0.0) == compute_expected_maximum([0.0, 0.0], 0.0) == 0.0
    grown = [compute_expected_maximum([0.01] * attempts, 0.5) for attempts in range(1, 12)]
    assert all(less < more for less, more in pairwise(grown))


def test_the_common_correlation_is_the_mean_of_the_pairs():
    errors, correlations = np.array([1.0, 2.0, 0.5]), np.array([[1, 0.2, 0.6], [0.2, 1, 0.1], [0.6, 0.1, 1]])
    covariance = correlations * np.outer(errors, errors)
    assert compute_common_correlation(covariance) == pytest.approx(0.3)
    assert compute_common_correlation(np.diag([1.0, 1.0])) == 0.0
    assert compute_common_correlation(np.ones((1, 1))) == 0.0
    assert compute_common_correlation(np.array([[1.0, -0.9], [-0.9, 1.0]])) == 0.0
