"""Kendall's tau-b of two benchmarks: held against SciPy, and silent where entries are few."""

from __future__ import annotations

import numpy as np
import pytest
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


def test_the_matrix_of_fifteen_benchmarks_and_forty_entries_is_drawn_in_seconds():
    values = np.random.default_rng(1).random((15, 40))
    many = {f"b{n:02d}": {f"e{k}": value for k, value in enumerate(row)} for n, row in enumerate(values.tolist())}
    result = compute_concurrences(many)
    assert len(result) == 15 * 14 / 2
    assert np.mean([item.low <= 0 <= item.high for item in result]) > 0.85
