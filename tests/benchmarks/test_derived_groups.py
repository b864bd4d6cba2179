"""Quantiles of a score over groups."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.scoring.breakdown import compute_group_quantiles
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats.mstats import mquantiles


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.floats(0, 1))
def test_quantiles_are_scipys_of_type_seven_and_turn_with_the_scale(values, share):
    (result,) = compute_group_quantiles(values, (share,), "higher").values()
    assert result == pytest.approx(mquantiles(values, [share], alphap=1, betap=1)[0], abs=2e-6)
    (turned,) = compute_group_quantiles(-np.array(values), (share,), "lower").values()
    assert turned == pytest.approx(-result, abs=2e-6)


def test_the_worst_decile_of_a_loss_is_its_high_end():
    assert compute_group_quantiles(np.arange(11.0), (0.1, 0.5), "lower") == {"0.1": 9.0, "0.5": 5.0}
