"""Numbers over many benchmarks: held against SciPy, against brute force, and independent of who else enters."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from farshift import Answers, FarshiftError
from farshift.benchmarks.benchmark import load_benchmarks
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from farshift.benchmarks.scoring.score import compute_chance, make_scale
from farshift.benchmarks.statistics.aggregate import (
    Scale,
    Summary,
    aggregate,
    compute_iqm_weights,
    estimate_interquartile_mean,
    estimate_weighted_variance,
    normalise_summary,
)
from farshift.benchmarks.statistics.sample import RowScores, estimate_shared_variance
from farshift.benchmarks.statistics.variance_estimate import VarianceEstimate
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

seeds_of = st.integers(0, 10**6)


def table(seed: int, count: int = 4, entries: int = 3, rows: int = 40) -> dict[str, dict[str, RowScores]]:
    """Binary scores of entries on benchmarks, with 2 to 4 seeds each."""
    rng = np.random.default_rng(seed)
    return {
        f"b{number}": {
            f"e{entry}": RowScores((rng.random((rng.integers(2, 5), rows)) < rng.random()).astype(float))
            for entry in range(entries)
        }
        for number in range(count)
    }


SCALES = {f"b{number}": Scale(0.1 * (number % 3), 1.0) for number in range(30)}


def of(found, entry: str) -> dict:
    return next(row.to_dict() for row in found.rows if row.entry == entry)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=15))
def test_the_interquartile_mean_of_four_times_as_many_scores_is_scipys_trimmed_mean(scores):
    for some in (np.array(scores * 4), np.array(scores)):
        mean = compute_iqm_weights(some, np.full(len(some), 1 / len(some))) @ some
        assert mean == pytest.approx(stats.trim_mean(np.array(scores * 4), 0.25), abs=1e-9)


def test_a_score_across_a_cut_counts_by_the_part_inside():
    weights = compute_iqm_weights(np.array([5.0, 1.0, 3.0]), np.full(3, 1 / 3))
    assert weights == pytest.approx([1 / 6, 1 / 6, 2 / 3])


def test_the_mean_is_of_normalised_scores_and_a_loss_turns_round():
    result = {
        "up": {"x": Summary((0.5, 0.7), VarianceEstimate(0.01, 50))},
        "loss": {"x": Summary((0.25,), VarianceEstimate(0.01, 50))},
    }
    (row,) = aggregate(result, {"up": Scale(0.2, 1.0), "loss": Scale(1.0, 0.0)}).rows
    assert row.by_benchmark == pytest.approx({"loss": 0.75, "up": 0.5})
    assert row.mean.value == pytest.approx(0.625)
    se = np.sqrt(0.01 / 0.8**2 + np.var([0.5, 0.7], ddof=1) / 2 / 0.8**2 + 0.01) / 2
    assert row.mean.se == pytest.approx(se)


@given(seeds_of)
@settings(max_examples=15)
def test_who_else_enters_never_changes_a_number(seed):
    full = table(seed, entries=4)
    some = {name: {entry: result[entry] for entry in ("e1", "e3")} for name, result in full.items()}
    more, fewer = (aggregate(scores, SCALES, 100) for scores in (full, some))
    assert [of(more, entry) for entry in ("e1", "e3")] == [of(fewer, entry) for entry in ("e1", "e3")]


@given(seeds_of)
@settings(max_examples=15)
def test_the_order_of_rows_seeds_benchmarks_and_entries_never_shows(seed):
    rng = np.random.default_rng(seed)
    plain = table(seed)
    turned = {}
    for name in rng.permutation(sorted(plain)).tolist():
        rows = rng.permutation(40)
        turned[name] = {
            entry: RowScores(plain[name][entry].scores[rng.permutation(len(plain[name][entry].scores))][:, rows])
            for entry in reversed(sorted(plain[name]))
        }
    assert aggregate(plain, SCALES, draws=100).to_dict() == aggregate(turned, SCALES, draws=100).to_dict()


def test_an_entry_that_lacks_a_benchmark_is_listed_apart_with_what_it_lacks():
    scores = table(1)
    del scores["b2"]["e1"]
    scores["b0"]["e2"] = RowScores(np.full((2, 40), np.nan))
    result = aggregate(scores, SCALES, draws=100)
    assert [row.entry for row in result.rows] == ["e0"]
    assert [row.to_dict() for row in result.incomplete] == [
        {"entry": "e1", "missing": ["b2"], "has": 3},
        {"entry": "e2", "missing": ["b0"], "has": 3},
    ]


def test_what_cannot_be_aggregated_is_refused_in_one_line():
    with pytest.raises(FarshiftError, match="b0 has no chance level: omit it"):
        aggregate(table(1), {})
    with pytest.raises(FarshiftError, match="an aggregate requires at least one benchmark"):
        aggregate({}, SCALES)
    with pytest.raises(FarshiftError, match="give two different, finite ends"):
        Scale(0.0, np.inf)


def test_the_words_say_what_varies():
    assert "these 4 fixed benchmarks" in aggregate(table(1), SCALES, draws=10).interval
    single = {name: {"x": RowScores(result["e0"].scores[:1])} for name, result in table(1).items()}
    assert "seeds if there are several" in aggregate(single, SCALES, draws=10).interval


def test_the_draws_without_trimming_vary_as_the_closed_form_says(monkeypatch):
    result = [
        normalise_summary(
            Summary(tuple(np.random.default_rng(n).random(2 + n % 3)), VarianceEstimate(0.002, 99)), Scale(0.1, 1)
        )
        for n in range(8)
    ]
    monkeypatch.setattr("farshift.benchmarks.statistics.aggregate.compute_iqm_weights", lambda _, weights: weights)
    here = estimate_interquartile_mean([f"b{n}" for n in range(8)], result, 40_000)
    due = estimate_weighted_variance(result, [1 / 8] * 8)
    assert here.value == pytest.approx(np.mean([item.value for item in result]))
    assert here.se**2 == pytest.approx(due.variance, rel=0.03)
    assert here.df == pytest.approx(due.df, rel=0.01)


def test_a_single_benchmark_without_seeds_is_its_own_interquartile_mean():
    (row,) = aggregate(
        {"b0": {"x": Summary((0.6,), VarianceEstimate(0.0004, 500))}}, {"b0": Scale(0, 1)}, draws=20_000
    ).rows
    assert row.iqm.value == row.mean.value == 0.6
    assert row.mean.se == pytest.approx(0.02)
    assert row.iqm.se == pytest.approx(0.02, rel=0.03)
    assert row.mean.high - 0.6 == pytest.approx(stats.t.ppf(0.975, 500) * 0.02)


def test_what_seeds_share_is_the_mean_covariance_of_their_means():
    rng = np.random.default_rng(2)
    hard = rng.random(60)
    x = hard + 0.5 * rng.random((3, 60))
    endless = (-np.inf, np.inf)
    shared = (np.cov(x) / 60)[np.triu_indices(3, 1)].mean()
    assert estimate_shared_variance(RowScores(x, endless)).variance == pytest.approx(shared)
    single = RowScores(x[:1], endless)
    assert estimate_shared_variance(single) == single.spread()
    assert np.isnan(estimate_shared_variance(RowScores(np.full((2, 9), np.nan))).variance)


def test_an_entry_that_is_right_everywhere_is_not_certain_to_be():
    assert 0 < estimate_shared_variance(RowScores(np.ones((3, 100)))).variance < 0.001


CLASSES = Task("classification", ("x",), "y", classes=8)


@pytest.mark.parametrize(
    ("name", "level", "best"),
    [
        ("accuracy", 1 / 8, 1),
        ("balanced_accuracy", 1 / 8, 1),
        ("auroc", 0.5, 1),
        ("nll", log(8), 0),
        ("brier", 7 / 8, 0),
    ],
)
def test_guessing_scores_chance(name, level, best):
    """Equal probabilities and, for the metrics of classes, each class as often as any other."""
    rows, measure = 8000, find_metric(name)
    rng = np.random.default_rng(0)
    truth = np.arange(rows) % 8
    answers = measured_answers(rng, rows, equal=name in ("nll", "brier"))
    assert measure.value(answers, truth, CLASSES) == pytest.approx(level, abs=0.02)
    assert compute_chance(measure, CLASSES) == pytest.approx(level)
    assert Scale(level, best).span != 0


def measured_answers(rng, rows: int, equal: bool):
    scores = np.full((rows, 8), 1 / 8) if equal else rng.dirichlet(np.ones(8), rows)
    return Answers(rng.integers(0, 8, rows), np.zeros(rows, np.int8), scores)


def test_metrics_without_a_level_of_chance_have_none():
    assert compute_chance(find_metric("rmse"), Task("regression", ("x",), "y")) is None
    assert compute_chance(find_metric("ece"), CLASSES) is None
    assert compute_chance(find_metric("exact_match"), Task("sequence", ("x",), "y")) == 0.0


def test_every_shipped_benchmark_has_a_scale_or_a_metric_without_one():
    without = {item.metrics[0].name for item in load_benchmarks().values() if make_scale(item) is None}
    assert without <= {"rmse", "multilabel_average_precision", "worst_group_regret"}
    with_classes = [item for item in load_benchmarks().values() if item.metrics[0].name == "accuracy"]
    assert with_classes
    assert all(make_scale(item) == Scale(1 / item.task.classes, 1.0) for item in with_classes)
