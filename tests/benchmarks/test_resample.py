"""Resampling by counts has the law of resampling rows; the worst group's interval knows that it was picked."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.statistics.resample import MOST_CONTINUOUS, cells, resampled_difference, resampled_mean
from farshift.benchmarks.statistics.sample import RowScores
from farshift.benchmarks.statistics.worst_group import worst_group
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats


def by_rows(rng, apart: np.ndarray, resamples: int) -> np.ndarray:
    """The plain bootstrap of a mean."""
    return apart[rng.integers(0, len(apart), (resamples, len(apart)))].mean(axis=1)


@pytest.mark.parametrize("levels", [2, 6])
def test_resampling_counts_is_resampling_rows(levels):
    """Kolmogorov and Smirnov cannot tell 4,000 resamples by counts from 4,000 by rows."""
    rng = np.random.default_rng(levels)
    left, right = (rng.integers(0, levels, 60) / (levels - 1) for _ in range(2))
    found = resampled_difference(left, right, resamples=4000)
    assert stats.ks_2samp(found, by_rows(rng, left - right, 4000)).pvalue > 0.01
    assert found.std() == pytest.approx((left - right).std() / np.sqrt(60), rel=0.05)


def test_resampling_clusters_is_resampling_whole_clusters():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 15, 200)
    scores = rng.uniform(size=15)[codes] + rng.uniform(size=200)
    found = resampled_mean(scores, codes, 4000)
    members = [np.flatnonzero(codes == one) for one in range(15)]
    plain = [scores[np.concatenate([members[one] for one in rng.integers(0, 15, 15)])].mean() for _ in range(4000)]
    assert stats.ks_2samp(found, plain).pvalue > 0.01
    assert found.std() > 1.5 * resampled_mean(scores, resamples=1000).std()


def test_a_million_rows_of_a_bootstrap_have_the_analytic_standard_error():
    rng = np.random.default_rng(2)
    left, right = (rng.uniform(size=10**6) < share for share in (0.7, 0.72))
    apart = left.astype(float) - right
    assert resampled_difference(left, right).std() == pytest.approx(apart.std() / 1000, rel=0.03)


@given(
    st.integers(1, 3).flatmap(
        lambda count: st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 0.5])] * count), min_size=1, max_size=40)
    )
)
@settings(max_examples=100, deadline=None)
def test_cells_are_the_distinct_rows_and_their_counts(rows):
    table = np.array(rows)
    values, counts = np.unique(table, axis=0, return_counts=True)
    found = cells(*table.T)
    assert (found.values == values).all()
    assert (found.counts == counts).all()


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=50))
@settings(max_examples=60, deadline=None)
def test_right_and_wrong_are_counted_alike_in_every_type(rows):
    left, right = np.array(rows).T
    found = [cells(left.astype(kind), right.astype(kind)) for kind in (bool, np.uint8, np.float64)]
    for one in found[1:]:
        assert (one.values == found[0].values).all()
        assert (one.counts == found[0].counts).all()
    draws = [resampled_difference(left.astype(kind), right.astype(kind), resamples=20) for kind in (bool, np.float64)]
    assert (draws[0] == draws[1]).all()
    assert (np.abs(draws[0]) <= 1).all()


def test_a_stream_is_named():
    scores = np.array([0.0, 1, 1, 1, 0, 1])
    assert (resampled_mean(scores) == resampled_mean(scores)).all()
    assert (resampled_mean(scores) != resampled_mean(scores, stream="another")).any()


def test_continuous_scores_take_few_resamples():
    scores = np.random.default_rng(3).normal(size=20_000)
    with pytest.raises(ValueError, match="take the analytic interval"):
        resampled_mean(scores)
    found = resampled_mean(scores[:4000], resamples=MOST_CONTINUOUS)
    assert found.std() == pytest.approx(scores[:4000].std() / np.sqrt(4000), rel=0.06)


def groups_of(rng, true: np.ndarray, rows: int, seeds: int = 1) -> tuple[RowScores, np.ndarray]:
    groups = np.arange(rows) % len(true)
    return RowScores((rng.uniform(size=(seeds, rows)) < true[groups]).astype(float)), groups


def test_the_worst_of_equal_groups_looks_worse_than_it_is():
    sample, groups = groups_of(np.random.default_rng(4), np.full(30, 0.6), 6000)
    found = worst_group(sample, groups)
    assert found.value == min(sample.scores[0, groups == one].mean() for one in range(30))
    assert found.value < 0.57
    assert found.low < found.value < 0.6 <= found.high
    assert found.bias < -0.01
    assert found.chance.sum() == pytest.approx(1)
    assert found.to_dict() == worst_group(sample, groups).to_dict()


def test_a_clearly_worst_group_has_about_its_own_interval():
    sample, groups = groups_of(np.random.default_rng(5), np.array([0.3, 0.8, 0.85, 0.9]), 2000)
    found = worst_group(sample, groups)
    own = stats.norm.isf(0.025) * np.sqrt(0.3 * 0.7 / 500)
    assert found.group == 0
    assert found.bias == pytest.approx(0, abs=0.002)
    assert found.chance.tolist() == [1, 0, 0, 0]
    assert 1.9 * own < found.high - found.low < 2.3 * own


def test_a_loss_is_worst_where_it_is_highest():
    sample, groups = groups_of(np.random.default_rng(6), np.array([0.2, 0.4, 0.5]), 900)
    loss = worst_group(RowScores(1 - sample.scores), groups, better="lower")
    gain = worst_group(sample, groups)
    assert loss.group == gain.group == 0
    assert (loss.value, loss.low, loss.high) == pytest.approx((1 - gain.value, 1 - gain.high, 1 - gain.low))
    assert loss.bias == pytest.approx(-gain.bias, abs=0.002)


def test_counted_scores_and_others_have_the_same_intervals():
    """Half the scores: no longer whole numbers, so their moments are taken row by row."""
    sample, groups = groups_of(np.random.default_rng(7), np.array([0.4, 0.5, 0.45]), 900)
    half = worst_group(RowScores(sample.scores / 2, (0.0, 0.5)), groups)
    whole = worst_group(sample, groups)
    assert 2 * half.means == pytest.approx(whole.means)
    assert 2 * half.lows == pytest.approx(whole.lows)
    assert 2 * half.high == pytest.approx(whole.high)
    assert 2 * half.bias == pytest.approx(whole.bias, abs=0.003)


def test_clusters_within_groups_widen_and_groups_that_are_clusters_do_not():
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(4), 400)
    clusters = np.arange(1600) // 40
    alike = rng.uniform(-0.3, 0.3, 40)[clusters]
    scores = (rng.uniform(size=(1, 1600)) < 0.5 + alike).astype(float)
    plain, clustered, same = (worst_group(RowScores(scores, clusters=one), groups) for one in (None, clusters, groups))
    assert clustered.highs[0] - clustered.lows[0] > 1.5 * (plain.highs[0] - plain.lows[0])
    assert same.to_dict() == plain.to_dict()


def test_groups_of_a_single_row_are_refused():
    with pytest.raises(ValueError, match="two rows or more"):
        worst_group(RowScores(np.ones((1, 3))), np.array([0, 0, 1]))
