"""The compositionality gap: by hand, against brute force, and against the truth its interval claims to cover."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.derived.compositional import estimate_compositionality_gap
from farshift.benchmarks.statistics.interval import Estimate, NotAvailable, estimate_mean
from farshift.benchmarks.statistics.sample import RowScores
from hypothesis import assume, given
from hypothesis import strategies as st

answers = st.tuples(st.integers(1, 4), st.integers(1, 30), st.integers(1, 3), st.integers(0, 2**32 - 1))


def drawn(seeds: int, rows: int, parts: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(seeds, rows)) < 0.4, rng.uniform(size=(seeds, rows, parts)) < 0.7


def test_a_gap_by_hand():
    parts = np.array([[[1, 1], [1, 1], [1, 1], [1, 0], [0, 1]], [[1, 1], [1, 1], [0, 0], [1, 1], [0, 0]]], bool)
    full = np.array([[1, 0, 0, 0, 1], [1, 0, 0, 1, 1]], bool)
    result = estimate_compositionality_gap(full, parts)
    assert result.gap.value == 3 / 6
    assert result.gap.per_seed == (2 / 3, 1 / 3)
    assert (result.gap.rows, result.gap.seeds) == (4, 2)
    assert result.parts_right == estimate_mean(RowScores(np.array([[1, 1, 1, 0, 0], [1, 1, 0, 1, 0]], float)))


@given(answers)
def test_the_gap_is_the_share_of_wrong_wholes_among_right_parts(shape):
    full, parts = drawn(*shape)
    wrong = [
        not full[seed, row] for seed, row in np.ndindex(*full.shape) if all(bool(item) for item in parts[seed, row])
    ]
    result = estimate_compositionality_gap(full, parts)
    if wrong:
        assert result.gap.value == pytest.approx(sum(wrong) / len(wrong))
        assert result.gap.low <= result.gap.value <= result.gap.high
    else:
        assert result.gap == NotAvailable("no row has all parts right")
    assert result.parts_right.value == pytest.approx(len(wrong) / full.size)


@given(answers)
def test_where_all_parts_are_right_it_is_the_mean_of_wrong_wholes(shape):
    full, parts = drawn(*shape)
    result = estimate_compositionality_gap(full, np.ones_like(parts)).gap
    plain = estimate_mean(RowScores((~full).astype(float)))
    assert isinstance(result, Estimate)
    for name in ("value", "low", "high", "row_se"):
        assert getattr(result, name) == pytest.approx(getattr(plain, name))
    assert result.seed_se == (None if plain.seed_se is None else pytest.approx(plain.seed_se))


@given(answers)
def test_rows_whose_parts_are_never_right_change_nothing(shape):
    full, parts = drawn(*shape)
    assume(parts.all(axis=2).any())
    seeds, _, count = parts.shape
    more = np.concatenate([parts, np.zeros((seeds, 9, count), bool)], axis=1)
    wider = estimate_compositionality_gap(np.concatenate([full, np.ones((seeds, 9), bool)], axis=1), more)
    assert wider.gap == estimate_compositionality_gap(full, parts).gap


def test_a_seed_without_right_parts_has_no_gap_of_its_own():
    parts = np.ones((2, 5, 2), bool)
    parts[1] = False
    result = estimate_compositionality_gap(np.zeros((2, 5), bool), parts).gap
    assert (result.value, result.per_seed) == (1.0, ())


def test_a_gap_of_none_or_all_keeps_a_width():
    parts = np.ones((1, 200, 2), bool)
    for full, value in ((np.ones((1, 200), bool), 0.0), (np.zeros((1, 200), bool), 1.0)):
        result = estimate_compositionality_gap(full, parts).gap
        assert result.value == value
        assert 0.005 < result.high - result.low < 0.03


def test_the_record_says_why_there_is_no_gap():
    record = estimate_compositionality_gap(np.ones((1, 3), bool), np.zeros((1, 3, 2), bool)).to_dict()
    assert record["gap"] == {"n/a": "no row has all parts right"}
    assert record["parts_right"]["value"] == 0


@pytest.mark.parametrize(("seeds", "seed_sd"), [(1, 0.0), (4, 0.0), (5, 0.06)])
def test_the_interval_covers_the_true_gap(seeds, seed_sd):
    """600 experiments: the Monte Carlo error of 95 % is 0.9 points. Some rows are easier in their parts and in the
    whole, so that numerator and denominator go together. With several seeds the interval is somewhat wide, as
    everywhere: rows and seeds both count the noise of single answers."""
    rng = np.random.default_rng(10 * seeds)
    covered = 0
    for _ in range(600):
        easy = rng.uniform(size=(1, 250)) < 0.5
        skill = np.clip(seed_sd * rng.standard_normal((seeds, 1)), -0.15, 0.15)
        parts = rng.uniform(size=(seeds, 250, 2)) < np.where(easy, 0.9, 0.6)[..., None]
        full = rng.uniform(size=(seeds, 250)) < np.where(easy, 0.8, 0.4) + skill
        result = estimate_compositionality_gap(full, parts).gap
        covered += result.low <= (0.81 * 0.2 + 0.36 * 0.6) / (0.81 + 0.36) <= result.high
    assert covered / 600 >= 0.93
    assert seeds > 1 or covered / 600 <= 0.97
