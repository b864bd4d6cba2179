"""Counter-based randomness, and which rows each replica sees in which step: the same alone or among many."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from farshift.baselines.replicas.rng import (
    Rng,
    derive_stream,
    draw_beta,
    draw_bits,
    draw_normal,
    draw_permutations,
    draw_uniform,
    make_keys,
)
from farshift.baselines.training.sampler import Data, Order, Sampler
from farshift.core.errors import ModelError
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

MANY = make_keys([f"replica {number}" for number in range(64)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws_are_uniform_on_the_half_open_unit_interval(dtype: torch.dtype) -> None:
    drawn = draw_uniform(MANY, (1000,), dtype)
    assert drawn.dtype == dtype
    assert 0 <= drawn.min() < drawn.max() < 1
    counts = np.histogram(drawn.numpy(), bins=256, range=(0, 1))[0]
    assert stats.chisquare(counts).pvalue > 1e-4
    assert stats.kstest(drawn.double().flatten().numpy(), "uniform").pvalue > 1e-4


def test_every_bit_is_set_half_of_the_time() -> None:
    drawn = draw_bits(MANY, 1000).numpy().view(np.uint64)
    for position in range(64):
        ones = int(((drawn >> np.uint64(position)) & np.uint64(1)).sum())
        assert stats.binomtest(ones, drawn.size).pvalue > 1e-5, position


@pytest.mark.parametrize("axis", ["replicas", "steps", "draws", "places", "columns"])
def test_neighbours_are_not_correlated(axis: str) -> None:
    count = 40_000
    if axis == "replicas":
        near = draw_uniform(make_keys([f"s{number}" for number in range(count + 1)]), (1,), torch.float64)[:, 0]
        pair = near[:-1], near[1:]
    elif axis == "places":
        near = draw_uniform(MANY[:1], (count + 1,), torch.float64)[0]
        pair = near[:-1], near[1:]
    elif axis == "columns":
        table = draw_uniform(MANY[:1], (200, 201), torch.float64)[0]
        pair = table[:, :-1].flatten(), table[:, 1:].flatten()
    else:
        noise = Rng(MANY)
        drawn = []
        for step in (5, 6) if axis == "steps" else (5,):
            noise.at(step)
            drawn += [
                draw_uniform(noise.fresh(), (count // 64,), torch.float64) for _ in range(1 if axis == "steps" else 2)
            ]
        pair = drawn[0].flatten(), drawn[1].flatten()
    a, b = (x.numpy() for x in pair)
    assert len(a) >= 39_000
    assert abs(stats.pearsonr(a, b).statistic) * len(a) ** 0.5 < 4.5
    cells = np.histogram2d(a, b, bins=16, range=((0, 1), (0, 1)))[0]
    assert stats.chisquare(cells.flatten()).pvalue > 1e-4


def test_normal_draws_have_the_moments_and_the_distribution_of_a_normal() -> None:
    drawn = draw_normal(MANY, (2000,), torch.float64).flatten().numpy()
    error = len(drawn) ** -0.5
    assert abs(drawn.mean()) < 4 * error
    assert abs(drawn.var() - 1) < 4 * 2**0.5 * error
    assert abs(stats.skew(drawn)) < 4 * 6**0.5 * error
    assert abs(stats.kurtosis(drawn)) < 4 * 24**0.5 * error
    assert stats.kstest(drawn, "norm").pvalue > 1e-4


def test_beta_draws_are_of_their_distribution_and_of_their_key() -> None:
    drawn = draw_beta(MANY, (500,), 0.3)
    assert stats.kstest(drawn.flatten().numpy(), stats.beta(0.3, 0.3).cdf).pvalue > 1e-4
    assert torch.equal(drawn[3:5], draw_beta(MANY[3:5], (500,), 0.3))


@given(count=st.integers(0, 40), seed=st.integers(0, 2**40))
def test_permutations_are_permutations(count: int, seed: int) -> None:
    result = draw_permutations(derive_stream(MANY[:3], "p", seed), count)
    assert result.shape == (3, count)
    assert all(sorted(row) == list(range(count)) for row in result.tolist())


def test_every_permutation_is_as_likely() -> None:
    orders = draw_permutations(make_keys([f"k{number}" for number in range(12_000)]), 4)
    counts = np.unique(orders.numpy(), axis=0, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-4


@given(shape=st.lists(st.integers(1, 5), max_size=3), more=st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_a_draw_does_not_depend_on_how_long_its_axes_are(shape: list[int], more: list[int]) -> None:
    longer = [length + extra for length, extra in zip(shape, more, strict=False)]
    corner = (slice(None), *(slice(length) for length in shape))
    assert torch.equal(draw_uniform(MANY[:2], shape), draw_uniform(MANY[:2], longer)[corner])


@given(which=st.lists(st.integers(0, 63), min_size=1, max_size=5))
@settings(max_examples=20)
def test_a_replica_draws_the_same_alone_or_among_many(which: list[int]) -> None:
    for draw in (
        lambda some: draw_uniform(some, (3, 2)),
        lambda some: draw_normal(some, (3, 2)),
        lambda some: draw_permutations(some, 7),
        lambda some: derive_stream(some, "name", 3, 4),
    ):
        assert torch.equal(draw(MANY[which]), draw(MANY)[which])


def test_streams_of_other_names_steps_and_draws_share_no_key() -> None:
    result = [derive_stream(MANY, name, step, draw) for name in ("a", "b") for step in range(20) for draw in range(20)]
    assert len(torch.cat(result).unique()) == 64 * 2 * 20 * 20


def test_a_counter_may_be_a_tensor() -> None:
    for step in (0, 1, 7, 10**12):
        assert torch.equal(derive_stream(MANY, "a", step), derive_stream(MANY, "a", torch.tensor(step)))


def test_a_step_begun_again_draws_the_same_and_evaluation_is_silent_inside_only() -> None:
    noise = Rng(MANY)
    assert noise.silent
    noise.at(3)
    first = [noise.fresh() for _ in range(2)]
    noise.at(3)
    assert all(torch.equal(item, noise.fresh()) for item in first)
    assert not torch.equal(*first)
    with noise.disabled():
        assert noise.silent
    assert not noise.silent


KEYS = make_keys(["a", "b", "c"])
PLAIN: dict[str, Any] = {"batch_size": 4, "pool": 1, "chunk": 0}


def data(rows: int = 24, **own: Any) -> Data:
    """Rows whose number and target are their place."""
    places = torch.arange(rows)
    inputs = torch.zeros(rows, 0, dtype=torch.int64), places[:, None].double()
    built = Data(inputs, places[None], torch.ones(rows, dtype=torch.int64), torch.ones(1, rows))
    return replace(built, **own)


def sampler(given: Data, by_environment: bool = False, some: Tensor = KEYS, **own: Any) -> Sampler:
    return Sampler(given, some, PLAIN | own, by_environment)


@given(
    weight=st.lists(st.integers(0, 3), min_size=1, max_size=8).filter(any),
    epoch=st.integers(0, 5),
    cuts=st.lists(st.integers(0, 24), max_size=3),
)
def test_each_epoch_has_each_row_as_often_as_its_weight_says(weight: list[int], epoch: int, cuts: list[int]) -> None:
    order = Order(torch.tensor([weight], dtype=torch.float64), KEYS, "o")
    length = sum(weight)
    ends = [0, *sorted(cut % (length + 1) for cut in cuts), length]
    pieces = [order.draw(epoch * length + a, b - a) for a, b in pairwise(ends) if b > a]
    for rows in torch.cat(pieces, dim=1):
        assert torch.bincount(rows, minlength=len(weight)).tolist() == weight


@given(weight=st.lists(st.sampled_from([0.0, 1.0, 2.0, 0.5]), min_size=2, max_size=6).filter(any), data_=st.data())
def test_a_batch_is_a_function_of_its_step(weight: list[float], data_: st.DataObject) -> None:
    """In whatever order the steps are asked for, by whichever object."""
    table = torch.tensor([weight], dtype=torch.float64)
    steps = data_.draw(st.lists(st.integers(0, 9), min_size=1, max_size=6))
    locked = Order(table, KEYS, "o")
    for step in steps:
        assert torch.equal(locked.draw(step * 3, 3), Order(table, KEYS, "o").draw(step * 3, 3))


def test_rows_are_drawn_in_proportion_to_weights_that_are_not_whole() -> None:
    weight = torch.tensor([0.5, 0.0, 1.5, 2.0], dtype=torch.float64)
    drawn = Order(weight[None], KEYS, "o").draw(0, 20_000)
    for rows in drawn:
        counts = torch.bincount(rows, minlength=4)
        assert counts[1] == 0
        output = counts[weight > 0].numpy()
        assert stats.chisquare(output, (weight[weight > 0] / 4 * 20_000).numpy()).pvalue > 1e-4


def test_every_replica_has_weights_of_its_own() -> None:
    weight = torch.tensor([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0], [3.0, 0.0, 0.0]])
    rows = Order(weight, KEYS, "o").draw(0, 6)
    assert [torch.bincount(item, minlength=3).tolist() for item in rows] == [[3, 3, 0], [0, 4, 2], [6, 0, 0]]


@pytest.mark.parametrize("weight", [[1.0] * 9, [0.5, 1.5] * 4, [2.0, 1.0, 0.0]])
def test_a_replica_draws_the_same_rows_alone(weight: list[float]) -> None:
    table = torch.tensor([weight])
    together = Order(table, KEYS, "o").draw(7, 20)
    assert not torch.equal(together[0], together[1])
    for position in range(3):
        assert torch.equal(Order(table, KEYS[position : position + 1], "o").draw(7, 20)[0], together[position])


def test_epochs_and_names_have_other_orders() -> None:
    order = Order(torch.ones(1, 50), KEYS, "o")
    first, second = order.draw(0, 50), order.draw(50, 50)
    assert not torch.equal(first, second)
    assert not torch.equal(first, Order(torch.ones(1, 50), KEYS, "p").draw(0, 50))


def test_a_batch_holds_the_inputs_targets_and_groups_of_its_rows() -> None:
    group = torch.arange(24) % 3
    own = torch.stack([torch.arange(24) + 100 * position for position in range(3)])
    for target in (own[:1], own):
        batch = sampler(data(target=target, group=group)).batch(2)
        assert torch.equal(batch.inputs[1][..., 0], batch.rows.double())
        assert torch.equal(batch.group, batch.rows % 3)  # type: ignore[arg-type]
        assert torch.equal(batch.target, batch.rows + (0 if len(target) == 1 else 100) * torch.arange(3)[:, None])


@given(size=st.integers(1, 5), step=st.integers(0, 30), per_replica=st.booleans())
def test_environments_have_equal_shares_in_their_order(size: int, step: int, per_replica: bool) -> None:
    group = torch.tensor([0] * 10 + [1] * 3 + [2] * 5)
    weight = torch.ones(3 if per_replica else 1, 18)
    drawn = sampler(data(18, group=group, weight=weight), by_environment=True, batch_size=size).batch(step)
    assert drawn.environments == 3
    assert drawn.group is not None
    assert (drawn.group == torch.arange(3).repeat_interleave(size)).all()


def test_an_environment_whose_rows_all_have_no_weight_is_refused() -> None:
    group = torch.tensor([0] * 6 + [1] * 6)
    with pytest.raises(ModelError, match="environment 1 has no training row left"):
        sampler(data(12, group=group, weight=(group == 0).double()[None]), by_environment=True)


def test_a_full_batch_by_environment_has_as_many_rows_of_each_as_the_smallest_has() -> None:
    group = torch.tensor([0] * 7 + [1] * 3)
    batch = sampler(data(10, group=group), by_environment=True, batch_size=0).batch(0)
    assert batch.rows.shape == (3, 6)
    assert batch.rows[:, 3:].sort(dim=1).values.tolist() == [[7, 8, 9]] * 3


@given(pool=st.integers(2, 6), size=st.integers(1, 4))
def test_pooled_batches_lose_no_row_and_hold_rows_of_like_length(pool: int, size: int) -> None:
    rows = pool * size
    built = sampler(data(rows, lengths=1 + torch.arange(rows) % 7), pool=pool, batch_size=size)
    window = [built.batch(step).rows for step in range(pool)]
    every = torch.cat(window, dim=1)
    assert every.sort(dim=1).values.tolist() == [list(range(rows))] * 3
    for position in range(3):
        spans = sorted((int((1 + b[position] % 7).min()), int((1 + b[position] % 7).max())) for b in window)
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize("chunk", [0, 5, 24, 100])
def test_a_full_batch_in_chunks_is_all_rows_once_with_their_shares(chunk: int) -> None:
    weight = torch.stack([torch.ones(24), torch.arange(24.0), (torch.arange(24) < 9).float()])
    parts = list(sampler(data(weight=weight), batch_size=0, chunk=chunk).batches(3))
    rows = torch.cat([batch.rows for batch, _ in parts], dim=1)
    assert rows.tolist() == [list(range(24))] * 3
    output = torch.cat([batch.weight for batch, _ in parts], dim=1)  # type: ignore[misc]
    assert torch.equal(output, weight)
    if chunk:
        shares = torch.stack([share for _, share in parts])  # type: ignore[misc]
        expected = [weight[:, start : start + chunk].sum(1) / weight.sum(1) for start in range(0, 24, chunk)]
        torch.testing.assert_close(shares, torch.stack(expected))
    else:
        assert parts[0][1] is None


def test_unlabelled_rows_come_along_in_an_order_of_their_own() -> None:
    shifted = torch.zeros(8, 0, dtype=torch.int64), 1000.0 + torch.arange(8)[:, None]
    built = sampler(data(unlabelled=shifted))
    seen = torch.cat([built.batch(step).unlabelled[1] for step in range(2)], dim=1)[..., 0]  # type: ignore[index]
    assert (np.sort(seen.numpy(), axis=1) == 1000 + np.arange(8)).all()
    assert len(built.batch(0).unlabelled[1][0]) == 4  # type: ignore[index]


def test_columns_in_which_all_rows_are_padding_are_left_out() -> None:
    target = torch.zeros(6, 9, dtype=torch.int64)
    lengths = torch.tensor([1, 2, 3, 1, 2, 3])
    for row, length in enumerate(lengths):
        target[row, :length] = 5
    built = data(6, inputs=(target, target), target=target[None], lengths=lengths)
    for step in range(12):
        batch = sampler(built, some=KEYS[:1], batch_size=1).batch(step)
        longest = int(lengths[batch.rows].max())
        assert batch.target.shape == batch.inputs[0].shape == batch.inputs[1].shape == (1, 1, longest)
