"""Counter-based randomness: the same everywhere, and random enough; and streams of a secret seed, drawn by a cipher."""

from __future__ import annotations

import hmac
from hashlib import sha256

import numpy as np
import pytest
from farshift.core.draws import draw_below, draw_bits, draw_permutation, draw_uniform, make_stream_name
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

SEED = bytes(range(32))
NAME = make_stream_name(SEED)


def test_a_draw_is_the_encryption_of_its_counter_under_the_key_of_its_stream():
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = hmac.digest(SEED, b"/labels", sha256)
    counter = 2**63 + 5
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(counter.to_bytes(8, "little") + bytes(8))
    drawn = draw_bits(f"{NAME}/labels", np.array([3, counter], np.uint64))
    assert int(drawn[1]) == int.from_bytes(block[:8], "little")


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        (f"{NAME}/0", [16310185825505779375, 1542252840441751641, 11180056818839474328]),
        ("farshift", [15480030901986467757, 13626340367762725853, 4610423741825829511]),
    ],
)
def test_these_numbers_never_change(name, numbers):
    """Golden: published splits are drawn with these."""
    assert draw_bits(name, np.arange(3, dtype=np.uint64)).tolist() == numbers


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40), st.permutations(range(5)))
def test_a_draw_depends_on_its_counter_alone(counters, order):
    every = np.array(counters, np.uint64)
    drawn = draw_bits(f"{NAME}/x", every)
    assert drawn.tolist() == [int(draw_bits(f"{NAME}/x", np.array([item], np.uint64))[0]) for item in counters]
    square = draw_bits(f"{NAME}/x", np.resize(every, (2, 3)))
    assert square.shape == (2, 3)
    assert square.ravel().tolist() == np.resize(drawn, 6).tolist()


def test_streams_and_seeds_differ():
    counters = np.arange(1000, dtype=np.uint64)
    other = make_stream_name(bytes(32))
    several = [draw_bits(name, counters) for name in (f"{NAME}/a", f"{NAME}/b", f"{other}/a", "plain/a")]
    for position, item in enumerate(several):
        for another in several[position + 1 :]:
            assert not np.isin(item, another).any()


def test_a_seed_of_another_length_is_no_seed():
    with pytest.raises(ValueError, match="32 bytes"):
        make_stream_name(b"short")


COUNTERS = np.arange(200_000, dtype=np.uint64)


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
