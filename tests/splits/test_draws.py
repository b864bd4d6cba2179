"""Counter-based randomness: the same everywhere, and random enough."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.core.draws import draw_below, draw_bits, draw_permutation, draw_uniform
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

COUNTERS = np.arange(200_000, dtype=np.uint64)


def test_frozen_bits_never_change():
    """Golden: published splits are drawn with these."""
    assert [int(value) for value in draw_bits("farshift", np.arange(3, dtype=np.uint64))] == [
        15480030901986467757,
        13626340367762725853,
        4610423741825829511,
    ]


def test_a_draw_depends_on_its_name_and_counter_alone():
    full = draw_bits("a", COUNTERS)
    assert np.array_equal(draw_bits("a", COUNTERS[7:9]), full[7:9])
    assert not np.array_equal(draw_bits("b", COUNTERS), full)


def test_uniform_draws_pass_a_kolmogorov_smirnov_test():
    assert stats.kstest(draw_uniform("ks", COUNTERS), "uniform").pvalue > 0.001


def test_draws_below_a_bound_are_even():
    counts = np.bincount(draw_below("even", COUNTERS, 96), minlength=96)
    assert len(counts) == 96
    assert stats.chisquare(counts).pvalue > 0.001


def test_neighbouring_counters_and_names_are_uncorrelated():
    x, y = draw_uniform("one", COUNTERS), draw_uniform("two", COUNTERS)
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(x, y)[0, 1]) < 0.01


def test_a_shuffle_is_a_permutation_that_moves_with_its_rows():
    ids = np.array([9, 4, 7, 1], np.uint64)
    order = draw_permutation("s", ids)
    assert sorted(order.tolist()) == [0, 1, 2, 3]
    assert ids[order].tolist() == ids[::-1][draw_permutation("s", ids[::-1])].tolist()


@given(st.lists(st.integers(0, 6)), st.integers(0, 3))
def test_a_shuffle_sorts_by_draws_and_then_by_counters(counters, stream):
    counters = np.array(counters, np.uint64)
    drawn = draw_bits(f"{stream}", counters).tolist()
    plain = sorted(range(len(counters)), key=lambda place: (drawn[place], int(counters[place])))
    assert draw_permutation(f"{stream}", counters).tolist() == plain


def test_a_bound_out_of_range_is_refused():
    with pytest.raises(ValueError, match="bound"):
        draw_below("x", COUNTERS[:2], 0)
