"""The worst group's interval knows that it was picked; quantiles over groups."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.scoring.breakdown import compute_group_quantiles
from farshift.benchmarks.statistics.sample import RowScores
from farshift.benchmarks.statistics.worst_group import estimate_worst_group
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats.mstats import mquantiles


def groups_of(rng, true: np.ndarray, rows: int, seeds: int = 1) -> tuple[RowScores, np.ndarray]:
    groups = np.arange(rows) % len(true)
    return RowScores((rng.uniform(size=(seeds, rows)) < true[groups]).astype(float)), groups


def test_the_worst_of_equal_groups_looks_worse_than_it_is():
    sample, groups = groups_of(np.random.default_rng(4), np.full(30, 0.6), 6000)
    result = estimate_worst_group(sample, groups)
    assert result.value == min(sample.scores[0, groups == item].mean() for item in range(30))
    assert result.value < 0.57
    assert result.low < result.value < 0.6 <= result.high
    assert result.bias < -0.01
    assert result.to_dict() == estimate_worst_group(sample, groups).to_dict()


def test_a_clearly_worst_group_has_about_its_own_interval():
    sample, groups = groups_of(np.random.default_rng(5), np.array([0.3, 0.8, 0.85, 0.9]), 2000)
    result = estimate_worst_group(sample, groups)
    own = stats.norm.isf(0.025) * np.sqrt(0.3 * 0.7 / 500)
    assert result.group == 0
    assert result.bias == pytest.approx(0, abs=0.002)
    assert 1.9 * own < result.high - result.low < 2.3 * own


def test_a_loss_is_worst_where_it_is_highest():
    sample, groups = groups_of(np.random.default_rng(6), np.array([0.2, 0.4, 0.5]), 900)
    loss = estimate_worst_group(RowScores(1 - sample.scores), groups, better="lower")
    gain = estimate_worst_group(sample, groups)
    assert loss.group == gain.group == 0
    assert (loss.value, loss.low, loss.high) == pytest.approx((1 - gain.value, 1 - gain.high, 1 - gain.low))
    assert loss.bias == pytest.approx(-gain.bias, abs=0.002)


def test_half_the_scores_have_half_the_interval():
    sample, groups = groups_of(np.random.default_rng(7), np.array([0.4, 0.5, 0.45]), 900)
    half = estimate_worst_group(RowScores(sample.scores / 2, (0.0, 0.5)), groups)
    full = estimate_worst_group(sample, groups)
    assert 2 * half.low == pytest.approx(full.low)
    assert 2 * half.high == pytest.approx(full.high)
    assert 2 * half.bias == pytest.approx(full.bias, abs=0.003)


def test_clusters_within_groups_widen_and_groups_that_are_clusters_do_not():
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(4), 400)
    clusters = np.arange(1600) // 40
    alike = rng.uniform(-0.3, 0.3, 40)[clusters]
    scores = (rng.uniform(size=(1, 1600)) < 0.5 + alike).astype(float)
    plain, clustered, same = (
        estimate_worst_group(RowScores(scores, clusters=item), groups) for item in (None, clusters, groups)
    )
    assert clustered.high - clustered.low > 1.5 * (plain.high - plain.low)
    assert same.to_dict() == plain.to_dict()


def test_groups_of_a_single_row_are_refused():
    with pytest.raises(ValueError, match="at least two rows"):
        estimate_worst_group(RowScores(np.ones((1, 3))), np.array([0, 0, 1]))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.floats(0, 1))
def test_quantiles_are_scipys_of_type_seven_and_turn_with_the_scale(values, share):
    (result,) = compute_group_quantiles(values, (share,), "higher").values()
    assert result == pytest.approx(mquantiles(values, [share], alphap=1, betap=1)[0], abs=2e-6)
    (turned,) = compute_group_quantiles(-np.array(values), (share,), "lower").values()
    assert turned == pytest.approx(-result, abs=2e-6)


def test_the_worst_decile_of_a_loss_is_its_high_end():
    assert compute_group_quantiles(np.arange(11.0), (0.1, 0.5), "lower") == {"0.1": 9.0, "0.5": 5.0}
