"""Intervals: held against SciPy, against brute force, and against the truth they claim to cover."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from farshift.benchmarks.statistics.interval import (
    combine_crossed_variances,
    estimate_gap,
    estimate_gap_difference,
    estimate_mean,
    estimate_paired_difference,
    has_split_seeds,
)
from farshift.benchmarks.statistics.sample import Replicates, RowScores, assign_row_groups, make_replicates
from farshift.benchmarks.statistics.variance_estimate import (
    VarianceEstimate,
    compute_reach,
    compute_two_sided_p,
    estimate_row_variance,
    estimate_seed_variance,
    find_t_quantiles,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from simulation.clustered import World, measure
from simulation.intervals import SETTINGS, coverage, report


@given(st.floats(1, 1e5), st.sampled_from([1e-9, 0.01, 0.05, 0.2, 0.5]))
def test_the_t_quantile_has_its_tail(df, tail):
    t = float(find_t_quantiles(tail, df))
    assert t == pytest.approx(stats.t.isf(tail / 2, df), rel=1e-8)
    assert compute_two_sided_p(t, df) == pytest.approx(tail, rel=1e-8)


binary = st.integers(1, 5).flatmap(
    lambda seeds: st.lists(st.lists(st.booleans(), min_size=seeds, max_size=seeds), min_size=2, max_size=60)
)


@given(binary)
def test_spreads_are_the_plain_sample_variances(columns):
    scores = np.array(columns, np.float64).T
    with_ends = np.concatenate([scores.mean(axis=0), [0.0, 1.0]])
    assert estimate_row_variance(scores).variance == pytest.approx(with_ends.var(ddof=1) / len(with_ends), rel=1e-12)
    per_seed = scores.mean(axis=1).tolist()
    spread = estimate_seed_variance(per_seed)
    if len(per_seed) == 1:
        assert spread is None
    else:
        assert spread.variance == pytest.approx(np.var(per_seed, ddof=1) / len(per_seed), rel=1e-12, abs=1e-15)


@given(binary, st.randoms(use_true_random=False))
def test_the_order_of_rows_never_shows_in_the_bits(columns, shuffler):
    scores = np.array(columns, np.float64).T
    order = list(range(scores.shape[1]))
    shuffler.shuffle(order)
    assert estimate_mean(RowScores(scores)).to_dict() == estimate_mean(RowScores(scores[:, order])).to_dict()


def test_one_seed_says_nothing_of_seeds():
    assert estimate_mean(RowScores(np.ones((1, 10)))).seed_se is None
    assert estimate_mean(RowScores(np.ones((2, 10)))).seed_se == 0.0


def test_a_paired_difference_of_the_same_scores_is_zero_and_tight():
    scores = RowScores(np.random.default_rng(0).integers(0, 2, (3, 500)).astype(float))
    same, unpaired = estimate_paired_difference(scores, scores), estimate_gap(scores, scores)
    assert same.value == 0
    assert same.row_se < unpaired.row_se / 5
    zero = estimate_gap_difference((scores, scores), (scores, scores))
    assert zero.value == 0


def left_out(scores: np.ndarray, groups: np.ndarray) -> Replicates:
    """The mean, as if it were a statistic that only states can give."""
    sizes = np.bincount(groups)
    states = [[np.array([row[groups == k].sum(), (groups == k).sum()]) for k in range(len(sizes))] for row in scores]
    return make_replicates(states, np.add, lambda state: float(state[0] / state[1]), sizes, (0.0, 1.0))


def test_the_jackknife_of_a_mean_is_the_variance_between_its_groups():
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 2, (2, 600)).astype(float)
    groups = assign_row_groups(np.arange(600, dtype=np.uint64))
    assert np.bincount(groups).tolist() == [12] * 50
    sample = left_out(scores, groups)
    assert sample.per_seed == pytest.approx(scores.mean(axis=1).tolist(), abs=1e-12)
    by_group = np.array([scores[:, groups == k].mean() for k in range(50)])
    assert sample.spread().variance == pytest.approx(by_group.var(ddof=1) / 50, rel=1e-9)
    assert sample.spread().df == 49


def test_fewer_rows_than_groups_leave_out_one_at_a_time():
    groups = assign_row_groups(np.arange(7, dtype=np.uint64))
    assert sorted(groups.tolist()) == list(range(7))
    scores = np.array([[0.0, 1, 1, 0, 1, 1, 0]])
    assert left_out(scores, groups).spread().variance == pytest.approx(scores.var(ddof=1) / 7)


def test_differences_of_one_models_statistics_keep_seeds_and_groups_together():
    rng = np.random.default_rng(4)
    groups = assign_row_groups(np.arange(300, dtype=np.uint64))
    scores = [rng.integers(0, 2, (3, 300)).astype(float) for _ in range(2)]
    plain = RowScores(scores[0]).minus(RowScores(scores[1]))
    grouped = left_out(scores[0], groups).minus(left_out(scores[1], groups))
    assert grouped.per_seed == pytest.approx(plain.per_seed, abs=1e-12)
    assert plain.bounds == grouped.bounds == (-1.0, 1.0)
    paired = estimate_paired_difference(*(left_out(item, groups) for item in scores))
    assert paired.value == pytest.approx(estimate_paired_difference(*map(RowScores, scores)).value, abs=1e-12)


variances = st.floats(1e-9, 1e3)


@given(variances, st.integers(2, 10), variances, st.integers(2, 10), st.floats(0, 1))
def test_few_seeds_that_agree_by_chance_make_no_interval_narrow(by_rows, clusters, by_seeds, seeds, overlap):
    """The squared half-widths of rows and seeds add up (Banerjee 1960), but for what both have in common."""
    rows, training = VarianceEstimate(by_rows, clusters - 1), VarianceEstimate(by_seeds, seeds - 1)
    apart = compute_reach(combine_crossed_variances([rows], [training], 0.0))
    assert apart == pytest.approx(np.hypot(compute_reach(rows), compute_reach(training)), rel=1e-6)
    common = compute_reach(combine_crossed_variances([rows], [training], overlap * min(by_rows, by_seeds)))
    assert max(compute_reach(training), sqrt(by_rows)) * (1 - 1e-6) <= common <= apart * (1 + 1e-6)


def give_seeds(*values: float) -> RowScores:
    """One score of each seed, the same on 500 rows but for the rows' noise."""
    noise = 0.02 * np.sin(np.arange(500))
    return RowScores(np.array(values)[:, None] + noise)


@pytest.mark.parametrize("values", [(0.95, 0.94, 0.31), (0.9, 0.2), (0.25, 0.3, 0.28, 0.97, 0.96)])
def test_where_seeds_learn_or_fail_the_interval_is_their_range(values):
    result = estimate_mean(give_seeds(*values))
    assert (result.low, result.high) == pytest.approx((min(values), max(values)), abs=0.02)
    assert result.low < min(values) < max(values) < result.high
    difference = estimate_paired_difference(give_seeds(*values), give_seeds(*[0.1 for _ in values]))
    assert difference.low < 0 < difference.value


@pytest.mark.parametrize("values", [(0.95, 0.94, 0.8), (0.9,), (0.2, 0.5, 0.8), (0.5, 0.5, 0.5)])
def test_seeds_that_differ_by_degrees_are_not_split(values):
    assert not has_split_seeds(values, (0.0, 1.0))
    assert not has_split_seeds([1.0, 1.0, 90.0], (0.0, float("inf")))


TRIALS = 500


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_intervals_hold_the_truth_as_often_as_they_say(name):
    """Within the goal, and three standard errors of a simulation of so few trials; all settings together closer."""
    rows = list(coverage(name, TRIALS if name != "few rows" else TRIALS // 5))
    for row in rows:
        low, high = row.get("goal", (0.93, 0.97))
        assert low - 3 * row["mc_se"] <= row["coverage"] <= high + 3 * row["mc_se"], row
    if "seeds" in name or name == "few rows":
        return
    mean = sum(row["coverage"] for row in rows) / len(rows)
    spare = 3 * (0.95 * 0.05 / TRIALS / len(rows)) ** 0.5
    assert 0.94 - spare <= mean <= 0.965 + spare


def test_the_report_is_the_same_each_time_and_names_each_setting_once():
    first, again = report(3), report(3)
    assert first == again
    assert len({(row["what"], row["setting"]) for row in first}) == len(first) == sum(map(len, SETTINGS.values()))
    assert all(0 <= row["coverage"] <= 1 for row in first)


@pytest.mark.slow
@pytest.mark.parametrize(
    "world", [World("macro_f1", 8), World("auroc", 20), World("ece", 8, even=True), World("pearson", 8)], ids=str
)
def test_metrics_over_clusters_hold_the_truth_and_are_no_wider_than_need_be(world):
    """Within the goal, and three standard errors of a simulation of so few trials."""
    for row in measure(world, TRIALS // 5):
        low, high = row["goal"]
        assert low - 3 * row["mc_se"] <= row["coverage"] <= high + 3 * row["mc_se"], row
