"""Tau of a diagnostic and the generalisation gap over runs: SciPy's on a data set, and clustered over data sets."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.comparison import run_measures
from farshift.benchmarks.comparison.run_measures import correlate_diagnostic
from farshift.core.errors import UnknownName
from scipy import stats


def run(benchmark, values, gaps):
    """A run of as many seeds as values, whose ID score is 1; None is a value that is not applicable."""
    spent = {f"seed_{seed}": {"x.y": "n/a" if v is None else v} for seed, v in enumerate(values)}
    card = SimpleNamespace(to_dict=lambda: {"spent": {"by_seed": spent}})
    return SimpleNamespace(benchmark=benchmark, card=card, seeds=tuple(range(len(values))), gaps=gaps)


@pytest.fixture(autouse=True)
def as_given(monkeypatch):
    monkeypatch.setattr(run_measures, "read_runs", list)

    class Side:
        metric = SimpleNamespace(better="higher")

        def __init__(self, run):
            self.run = run

        def sample(self, view):
            return SimpleNamespace(per_seed=[1.0 - (gap if view == "ood" else 0) for gap in self.run.gaps])

    monkeypatch.setattr(run_measures, "Side", Side)


def draw(seed, count=10):
    return np.random.default_rng(seed).normal(size=(2, count))


def test_tau_is_that_of_all_replicas_of_a_data_set_and_its_interval_that_of_data_sets():
    runs, expected = [], []
    for seed, name in enumerate("abc"):
        x, y = draw(seed)
        y += x
        runs += [run(f"{name}/one", x[:4], y[:4]), run(f"{name}/one", x[4:], y[4:])]
        expected.append(stats.kendalltau(x, y).statistic)
    result = correlate_diagnostic(runs, "x.y")
    assert list(result["by_data_set"].values()) == pytest.approx(expected)
    assert result["replicas"] == {"a": 10, "b": 10, "c": 10}
    low, high = stats.t.interval(0.95, 2, np.mean(expected), stats.sem(expected))
    assert (result["tau"], result["low"], result["high"]) == pytest.approx((np.mean(expected), low, min(1, high)))
    assert correlate_diagnostic(runs, "x.y", "ood")["tau"] == pytest.approx(-result["tau"])


def test_benchmarks_of_one_source_are_one_data_set_and_one_data_set_has_no_interval():
    x, y = draw(1)
    result = correlate_diagnostic([run("a/one", x, y), run("a/two", x, -y)], "x.y")
    assert result["by_data_set"] == pytest.approx({"a": 0.0})
    assert math.isnan(result["low"])


def test_many_replicas_do_not_narrow_the_interval_where_data_sets_disagree():
    x, _ = draw(2, 200)
    result = correlate_diagnostic([run("a/one", x, x), run("b/one", x, -x)], "x.y")
    assert (result["tau"], result["low"], result["high"]) == pytest.approx((0.0, -1.0, 1.0))


def test_replicas_without_a_value_do_not_count_and_what_no_run_has_is_refused():
    x, y = draw(3, 8)
    result = correlate_diagnostic([run("a/one", [None, *x], [9.0, *y])], "x.y")
    assert result["tau"] == pytest.approx(stats.kendalltau(x, y).statistic)
    with pytest.raises(UnknownName, match=r"x\.y"):
        correlate_diagnostic([run("a/one", x, y)], "x.z")
    with pytest.raises(FarshiftError, match="no data set has more than 6 replicas"):
        correlate_diagnostic([run("a/one", x[:6], y[:6])], "x.y")
