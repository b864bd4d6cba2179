"""The order of an epoch: a permutation, spread evenly, the same wherever and in whatever pieces it is asked for."""

from __future__ import annotations

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.loaders.batching.order import (
    STORED_ROWS,
    GlobalBatches,
    IndexPermutation,
    make_order,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

near_powers = st.builds(lambda power, off: max(1, 2**power + off), st.integers(0, 13), st.integers(-2, 2))


@given(st.one_of(st.integers(1, 5000), near_powers), st.text(max_size=5))
def test_an_index_permutation_holds_every_position_once(rows, name):
    positions = IndexPermutation(name, rows).at(np.arange(rows))
    assert np.array_equal(np.sort(positions), np.arange(rows))


@given(st.integers(1, 3000), st.lists(st.integers(0, 2**40), max_size=50))
def test_any_turns_of_an_index_permutation_can_be_asked_alone(rows, turns):
    order = IndexPermutation("alone", rows)
    some = np.array(turns, np.int64) % rows
    assert np.array_equal(order.at(some), order.at(np.arange(rows))[some])


def test_an_index_permutation_of_a_trillion_rows_needs_only_the_turns_asked_for():
    rows = 10**12
    positions = IndexPermutation("many", rows).at(np.arange(rows - 10_000, rows))
    assert len(np.unique(positions)) == 10_000
    assert positions.min() >= 0 and positions.max() < rows


def uniform(counts) -> bool:
    """No evidence against equal chances at 1 in 100,000; the draws are fixed, so this never changes by chance."""
    return stats.chisquare(counts).pvalue > 1e-5


@pytest.mark.parametrize("rows", [2**24 + 1, 3 * 2**24, 2**25 - 1])
def test_successive_turns_lie_evenly_over_the_rows_and_far_from_each_other(rows):
    positions = IndexPermutation("spread", rows).at(np.arange(50_000))
    assert uniform(np.bincount(positions * 100 // rows, minlength=100))
    steps = np.diff(positions) % rows
    assert uniform(np.bincount(steps * 100 // rows, minlength=100))
    assert uniform(np.bincount(positions % 2, minlength=2))
    assert abs(stats.spearmanr(np.arange(50_000), positions).statistic) < 0.02


def test_every_row_is_as_likely_as_any_to_come_first_over_seeds():
    rows = 1000
    firsts = np.array([IndexPermutation(f"id/train/{seed}/0", rows).at(np.arange(2)) for seed in range(5000)])
    assert uniform(np.bincount(firsts[:, 0] // 20, minlength=50))
    assert uniform(np.bincount(firsts[:, 0] // 200 * 5 + firsts[:, 1] // 200, minlength=25))


def test_orders_differ_by_seed_epoch_part_and_manifest_and_never_by_call():
    ids = np.arange(20, dtype=np.uint64)
    named = [
        ("id", "train", 0, 0),
        ("id", "train", 1, 0),
        ("id", "train", 0, 1),
        ("id", "val", 0, 0),
        ("other", "train", 0, 0),
    ]
    firsts = {tuple(make_order(*name, ids).at(np.arange(20)).tolist()) for name in named * 2}
    assert len(firsts) == len(named)


def test_published_orders_never_change():
    ids = np.arange(8, dtype=np.uint64)
    assert make_order("identity", "train", 0, 0, ids).at(np.arange(8)).tolist() == [0, 7, 2, 6, 1, 4, 5, 3]
    assert make_order("identity", "train", 7, 3, ids).at(np.arange(8)).tolist() == [5, 6, 2, 4, 1, 3, 0, 7]
    assert make_order("identity", "train", 0, 0, np.broadcast_to(ids[:1], STORED_ROWS + 1)).at(
        np.arange(6)
    ).tolist() == [
        13732871,
        6106117,
        14280142,
        5440313,
        12047700,
        3346142,
    ]
    assert STORED_ROWS == 2**24


@given(st.integers(0, 500), st.integers(1, 40), st.integers(1, 6), st.booleans())
def test_shares_of_a_global_batch_follow_each_other_and_differ_by_a_row_at_most(rows, each, world, drop_last):
    size = each * world
    cuts = [GlobalBatches(rows, size, rank, world, drop_last) for rank in range(world)]
    assert {cut.count for cut in cuts} == {len(range(0, rows - size + 1 if drop_last else rows, size))}
    for batch in range(cuts[0].count):
        shares = [cut.share(batch) for cut in cuts]
        turns = [turn for start, stop in shares for turn in range(start, stop)]
        assert turns == list(range(batch * size, min((batch + 1) * size, rows)))
        lengths = {stop - start for start, stop in shares}
        assert lengths == {each} if len(turns) == size else max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number from 1, not 0"),
        ({"batch_size": 3.5}, "batch_size must be a whole number from 1, not 3.5"),
        ({"batch_size": 10, "world": 4}, "batch_size 10 .* is not divisible by 4 ranks: use a multiple of 4"),
        ({"batch_size": 10, "world": 2, "rank": 2}, r"rank must be in 0\.\.1 where world is 2, not 2"),
        ({"batch_size": 10, "world": 0}, "world must be at least 1, not 0"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(FarshiftError, match=f"^{message}$"):
        GlobalBatches(100, **arguments)


def test_steps_that_do_not_fit_are_refused():
    cut = GlobalBatches(100, 10)
    with pytest.raises(FarshiftError, match=r"worker must be in 0\.\.2 where workers is 3, not 3"):
        cut.steps(worker=3, workers=3)
    with pytest.raises(FarshiftError, match="start must be a global batch, 0 or later, not -1"):
        cut.steps(-1)
