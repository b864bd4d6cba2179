"""What a draw's published files give away to who attacks the generator instead of solving the task: nothing."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.core import draws
from farshift.leaderboard.sealed.drawing import SealedDraw, draw_sealed_rows
from farshift.leaderboard.sealed.published import select_inputs
from farshift.loaders.freezing.redraw import redraw_rows
from numpy.typing import NDArray
from sealed_cases import SEED

WORDS = NDArray[np.uint64]
COUNTERS = 4_000
"""Rows among whose counters an attacker looks."""


def unshifted(values: WORDS, by: int) -> WORDS:
    """The inverse of `x ^ (x >> by)`."""
    result = values
    for _ in range(64 // by + 1):
        result = values ^ (result >> np.uint64(by))
    return result


def unmixed(values: WORDS) -> WORDS:
    """The inverse of the mixing function: two shifts and two odd factors, each of which can be undone."""
    values = unshifted(values, 31) * np.uint64(pow(0x94D049BB133111EB, -1, 2**64))
    values = unshifted(values, 27) * np.uint64(pow(0xBF58476D1CE4E5B9, -1, 2**64))
    return unshifted(values, 30)


def keys_of(shown: WORDS) -> set[int]:
    """The keys of a mixed stream that agree with three shown draws of it, whatever their counters. (Of two there are
    two, as either may have either counter.)"""
    inner = draws._mix_bits(np.arange(COUNTERS, dtype=np.uint64) + draws._GOLDEN)
    first, *others = (set(np.bitwise_xor(inner, item).tolist()) for item in unmixed(shown[:3]))
    return first.intersection(*others)


def words_of(texts: list[str]) -> WORDS:
    """Strings of 64 bits as the draws that they show."""
    return np.array([int(text, 2) for text in texts], np.uint64)


@pytest.fixture(scope="module")
def sums():
    return find_benchmark("prefix_sums/32_to_64")


@pytest.fixture(scope="module")
def sums_drawn(sums) -> SealedDraw:
    return draw_sealed_rows(sums, SEED)


def test_the_key_of_a_published_stream_is_found_from_three_rows_and_gives_all_others(sums):
    """The control: the attack works where it can."""
    rows = redraw_rows(sums.split.source, "some published seed")
    shown = words_of([text for text in rows["bits"].to_pylist() if len(text) == 64])
    (key,) = keys_of(shown)
    assert key == draws.derive_key("some published seed/64")
    inner = draws._mix_bits(np.arange(COUNTERS, dtype=np.uint64) + draws._GOLDEN)
    assert np.isin(shown, draws._mix_bits(inner ^ np.uint64(key))).all()


@pytest.mark.attack("entrant", "recovery of the key of a sealed stream from complete draws")
def test_the_same_attack_on_a_draw_finds_no_key(sums, sums_drawn):
    texts = select_inputs(sums_drawn.rows, sums)["bits"].to_pylist()
    shown = words_of([text for text in texts if len(text) == 64])
    assert len(shown) == 250
    for at in range(0, 45, 3):
        assert keys_of(shown[at : at + 3]) == set()
