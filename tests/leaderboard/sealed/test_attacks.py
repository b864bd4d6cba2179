"""What a draw's published files give away to who attacks the generator instead of solving the task: nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.core import draws
from farshift.core.draws import make_stream_name
from farshift.leaderboard.sealed.drawing import SealedDraw, draw_sealed_rows
from farshift.leaderboard.sealed.published import select_inputs
from farshift.loaders.freezing.redraw import redraw_rows
from numpy.typing import NDArray
from sealed_cases import SEED
from sklearn.linear_model import LogisticRegression
from test_drawing import ONE_OF_EACH_GENERATOR

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


def lowest_bits(inputs: NDArray[np.float32]) -> NDArray[np.float64]:
    """The twelve lowest bits of every number, -1 or 1; (rows, 12 * width)."""
    numbers = np.ascontiguousarray(inputs, np.float32).view(np.uint32)
    result = (numbers[:, :, None] >> np.arange(12, dtype=np.uint32)) & 1
    return 2.0 * result.reshape(len(inputs), -1) - 1


def share_right(known: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """Of a linear classifier that learns from half of the rows, on the other half."""
    half = len(truth) // 2
    model = LogisticRegression(C=0.01, max_iter=200).fit(known[:half], truth[:half])
    return float(model.score(known[half:], truth[half:]))


@pytest.mark.attack("entrant", "labels of slabs inferred from lowest bits and the order of ids")
def test_neither_lowest_bits_nor_the_order_of_ids_tell_the_labels_of_slabs():
    benchmark = find_benchmark("slabs_5/shuffled")
    drawn = draw_sealed_rows(benchmark, SEED)
    truth = drawn.rows.true_labels()
    chance = max(truth.mean(), 1 - truth.mean())
    bound = chance + 4 * np.sqrt(0.25 / (len(truth) // 2))
    inputs = np.stack(drawn.rows.numpy(["inputs"])["inputs"])
    assert share_right(lowest_bits(inputs), truth) < bound
    position = np.arange(len(truth), dtype=np.uint64)
    of_place = np.stack([2.0 * ((position >> np.uint64(bit)) & np.uint64(1)) - 1 for bit in range(11)], axis=1)
    assert share_right(of_place, truth) < bound
    of_id = np.stack([2.0 * ((drawn.rows.row_ids >> np.uint64(bit)) & np.uint64(1)) - 1 for bit in range(64)], axis=1)
    assert share_right(of_id, truth) < bound


@pytest.mark.attack("entrant", "prediction of a draw with the mixing function of published streams")
@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH_GENERATOR)
def test_no_number_of_a_draw_of_any_sort_of_generator_comes_from_the_mixing_function(name, monkeypatch):
    source = find_benchmark(name).split.source
    mixed, enciphered = asked_of_each(lambda: redraw_rows(source, make_stream_name(SEED)), monkeypatch)
    assert mixed == []
    assert enciphered


def asked_of_each(drawing: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """The streams that a generator draws from by a secret seed: by the mixing function, and by the cipher. (The rule
    that divides rows afterwards draws by public names.)"""
    mixed: list[str] = []
    enciphered: list[str] = []
    by_mixing, by_cipher = draws.derive_key, draws.draw_secret_bits
    monkeypatch.setattr(draws, "derive_key", lambda stream: (mixed.append(stream), by_mixing(stream))[1])
    monkeypatch.setattr(
        draws, "draw_secret_bits", lambda stream, at: (enciphered.append(stream), by_cipher(stream, at))[1]
    )
    drawing()
    return mixed, enciphered
