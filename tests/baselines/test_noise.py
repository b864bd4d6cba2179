"""Counter-based randomness: uniform, independent, and the same alone or among many."""

from __future__ import annotations

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
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

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


def test_a_device_may_be_named_by_a_text_or_an_object() -> None:
    assert torch.equal(make_keys(["a", "b"], "cpu"), make_keys(["a", "b"], torch.device("cpu")))


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
