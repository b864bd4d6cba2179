"""Over groups: the worst of them, and quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.derived.groups import compute_group_quantiles, find_worst_group
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats.mstats import mquantiles

scores = st.lists(st.floats(0, 1), min_size=1, max_size=50)


def test_the_worst_group_is_the_lowest_score_or_the_highest_loss():
    of = {"asia": 0.7, "europe": 0.9, "africa": 0.6}
    assert find_worst_group(of) == "africa"
    assert find_worst_group(of, "lower") == "europe"


def test_of_equal_groups_the_first_by_name_is_the_worst():
    assert find_worst_group({"b": 0.5, "a": 0.5, "c": 0.6}) == "a"
    assert find_worst_group({"b": 0.5, "a": 0.5, "c": 0.4}, "lower") == "a"


def test_quantiles_by_hand():
    assert compute_group_quantiles(np.array([0.9, 0.5, 0.7]), (0.0, 0.1, 0.25, 1.0)) == {
        "0": 0.5,
        "0.1": 0.54,
        "0.25": 0.6,
        "1": 0.9,
    }


def test_the_worst_decile_of_a_loss_is_its_high_end():
    losses = np.arange(11.0)
    assert compute_group_quantiles(losses, (0.1, 0.5), "lower") == {"0.1": 9.0, "0.5": 5.0}


@given(scores, st.floats(0, 1))
def test_quantiles_are_scipys_of_type_seven(values, share):
    result = compute_group_quantiles(np.array(values), (share,))[f"{share:g}"]
    assert result == pytest.approx(mquantiles(values, [share], alphap=1, betap=1)[0], abs=2e-6)


@given(scores, st.floats(0, 1))
def test_turning_the_scale_around_turns_the_quantiles_around(values, share):
    higher = compute_group_quantiles(np.array(values), (share,), "higher")
    lower = compute_group_quantiles(-np.array(values), (share,), "lower")
    for name in higher:
        assert higher[name] == pytest.approx(-lower[name], abs=2e-6)
