"""Adaptive sampling: rows of groups by learning curves, against brute force, the closed form and known curves."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from farshift.baselines.algorithms.adaptive_sampling import allocate_rows, fit_power_laws, make_gain

from .small_stacks import begun, clock_of, finished, steps_of, wide_rows

ROUNDS = {"batch_size": 20, "budget": 0.5, "rounds": 5}


@pytest.mark.parametrize("q", [1.0, 2.0, 6.0])
def test_no_allocation_of_whole_rows_has_a_lower_objective(q: float) -> None:
    scale, power, available = [1.0, 2.0, 0.7], [0.5, 0.3, 1.1], [9, 14, 5]

    def objective(rows: tuple[int, ...]) -> float:
        return sum((b * n**-p) ** q for b, n, p in zip(scale, rows, power, strict=True))

    chosen = allocate_rows(make_gain(scale, power, q), [1, 1, 1], available, 20)
    every = [rows for rows in product(*(range(1, most + 1) for most in available)) if sum(rows) == 20]
    assert objective(tuple(chosen)) == pytest.approx(min(map(objective, every)), rel=1e-12)
    assert sum(chosen) == 20


@pytest.mark.parametrize("q", [1.0, 3.0])
def test_of_equal_powers_rows_are_in_the_closed_form_s_proportions(q: float) -> None:
    # Lagrange: the derivative b^q p q n^(-pq - 1) is equal in all groups, so n ~ b^(q / (pq + 1)).
    scale, p, budget = [0.5, 1.0, 3.0], 0.4, 6000
    shares = torch.tensor(scale, dtype=torch.float64) ** (q / (p * q + 1))
    chosen = allocate_rows(make_gain(scale, [p] * 3, q), [1, 1, 1], [budget] * 3, budget)
    assert chosen == pytest.approx((budget * shares / shares.sum()).tolist(), abs=1)


def test_rows_given_in_rounds_are_those_given_at_once() -> None:
    gain, available, rows = make_gain([1.0, 2.0], [0.5, 0.2], 1.0), [60, 500], [1, 1]
    for budget in (20, 100, 300):
        rows = allocate_rows(gain, rows, available, budget)
    assert rows == allocate_rows(gain, [1, 1], available, 300)


def test_curves_that_fall_by_a_power_law_are_found_and_others_get_no_power() -> None:
    n = torch.tensor([[10, 20, 5], [20, 40, 5], [40, 50, 5], [45, 400, 5]])
    losses = torch.stack([3 * n[:, 0] ** -0.5, 0.1 * n[:, 1] ** 0.2, torch.ones(4)], dim=1).double()
    b, p = fit_power_laws(n, losses)
    assert p.tolist() == pytest.approx([0.5, 0, 0], abs=1e-6)
    assert b[[0, 2]].tolist() == pytest.approx([3, 1])


def collect(*each: dict[str, Any], rows: int = 240) -> Any:
    return begun("adaptive_sampling", *each, data=wide_rows(rows), common=ROUNDS, steps=20)


def test_a_round_trains_on_its_rows_which_later_rounds_keep() -> None:
    training, seen = collect({}, {"budget": 0.25}), {}
    for step in steps_of(training):
        ((batch, _),) = training.sampler.batches(step)
        algorithm, stage = training.stack.algorithm, clock_of(training).stage
        weight = algorithm.weigh_rows(stage)
        assert weight.sum(1).tolist() == [24 * (stage + 1), 12 * (stage + 1)]
        assert all(bool((weight >= earlier).all()) for earlier in seen.values())
        seen[stage] = weight
        rows = algorithm.choose_rows(batch, clock_of(training)).rows
        assert bool((weight.gather(1, rows) > 0).all())
    assert len(seen) == 5
    assert not torch.equal(seen[0][0], seen[0][1])


def test_curves_are_the_losses_of_each_round_s_network_in_each_group() -> None:
    training = begun("adaptive_sampling", {}, {}, data=wide_rows(240), common=ROUNDS | {"lr": 0.0}, steps=20)
    held_out, expected = training.data.held_out["id_val"], {}
    for step in steps_of(training):
        logs = training.stack.answer(*held_out.inputs).log_softmax(-1)
        errors = -logs.gather(2, held_out.target.expand(2, -1)[..., None])[..., 0]
        expected[step // 4] = torch.stack([errors[:, held_out.group == group].mean(1) for group in range(3)], dim=1)
    algorithm = training.run().ended[0].algorithm
    torch.testing.assert_close(algorithm.losses[:, :4], torch.stack([expected[k] for k in range(4)], dim=1))
    assert algorithm.sizes[:, :2].tolist() == [[[8, 8, 8], [16, 16, 16]]] * 2


def test_a_group_that_learns_by_more_rows_gets_more() -> None:
    algorithm = collect({}, {"aversion": 4.0}, {"budget": 0.3}).stack.algorithm
    algorithm.sizes[:, :2] = torch.tensor([[4, 4, 4], [8, 8, 8]])
    algorithm.losses[:, :2] = torch.tensor([[1.0, 1.0, 2.0], [0.5, 0.9, 1.9]], dtype=torch.float64)
    algorithm.collect_rows(2)
    (first, second, third), averse, small = algorithm.sizes[:, 2].tolist()
    assert first > 8 and first + second + third == 72 == sum(averse) and sum(small) == 43
    assert averse[2] > third


def test_heuristics_collect_equally_or_in_proportion() -> None:
    data = wide_rows(240)
    data = replace(
        data, group=torch.where(torch.arange(240) % 8 == 0, 1, torch.where(torch.arange(240) % 2 == 0, 0, 2))
    )
    for how, expected in (("equal", [40, 30, 50]), ("proportional", [45, 15, 60])):
        stack = finished(begun("adaptive_sampling", {"collect": how}, data=data, common=ROUNDS, steps=20))
        rows = stack.algorithm.sizes[0, -1].tolist()
        assert sum(rows) == 120
        assert rows == pytest.approx(expected, abs=5)
