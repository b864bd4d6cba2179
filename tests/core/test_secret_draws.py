"""Streams of a secret seed: reproducible, told apart by name, and drawn by the cipher of the standard."""

from __future__ import annotations

import hmac
from hashlib import sha256

import numpy as np
import pytest
from farshift.core.draws import draw_bits, make_stream_name
from hypothesis import given
from hypothesis import strategies as st

SEED = bytes(range(32))
NAME = make_stream_name(SEED)
PINNED = [16310185825505779375, 1542252840441751641, 11180056818839474328]


def test_a_draw_is_the_encryption_of_its_counter_under_the_key_of_its_stream():
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = hmac.digest(SEED, b"/labels", sha256)
    counter = 2**63 + 5
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(counter.to_bytes(8, "little") + bytes(8))
    drawn = draw_bits(f"{NAME}/labels", np.array([3, counter], np.uint64))
    assert int(drawn[1]) == int.from_bytes(block[:8], "little")


def test_these_numbers_never_change():
    assert draw_bits(f"{NAME}/0", np.arange(3, dtype=np.uint64)).tolist() == PINNED


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
