"""Algorithms that look one step ahead: MLDG, Fish, UDIM."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.replicas.rng import draw_permutations
from torch import Tensor

from .small_stacks import (
    ENVIRONMENTS,
    SHARE,
    batch_of,
    begun,
    clock_of,
    close,
    encode,
    head,
    moved_along,
    weights,
)

Weights = dict[str, Tensor]


def risk(w: Weights, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(head(w, encode(w, x)), y)


def slopes_of(loss: Tensor, w: Weights, graph: bool = False) -> Weights:
    result = torch.autograd.grad(loss, list(w.values()), create_graph=graph, retain_graph=True)
    return dict(zip(w, result, strict=True))


@pytest.mark.parametrize("first_order", [False, True])
def test_mldg_adds_the_risk_of_held_out_environments_after_a_step_down_the_others(first_order: bool) -> None:
    each = [{"inner_lr": 0.5, "meta_weight": 2.0}, {"inner_lr": 0.05, "meta_weight": 0.3}]
    training = begun("mldg", *(item | {"first_order": first_order} for item in each))
    batch, clock, before = batch_of(training), clock_of(training), [weights(training, k) for k in (0, 1)]
    held_out = draw_permutations(clock.draw("split"), ENVIRONMENTS)[:, 0]
    losses = training.stack.algorithm.loss(training.stack.network, batch, clock)
    training.step()
    expected = []
    for k, settings in enumerate(each):
        x, y, w = batch.inputs[1][k], batch.target[k], before[k]
        test = torch.arange(len(y)) // SHARE == held_out[k]
        train_risk = risk(w, x[~test], y[~test])
        inner = slopes_of(train_risk, w, graph=not first_order)
        there = {name: value - settings["inner_lr"] * inner[name] for name, value in w.items()}
        expected.append(train_risk + settings["meta_weight"] * risk(there, x[test], y[test]))
    assert close(losses, torch.stack(expected))
    assert moved_along(training, before, expected)


def test_fish_visits_environments_in_another_order_each_step() -> None:
    training = begun("fish", {}, {})
    orders = []
    for _ in range(5):
        orders.append(draw_permutations(clock_of(training).draw("order"), ENVIRONMENTS))
        training.step()
    assert len({tuple(row) for order in orders for row in order.tolist()}) > 2


def test_a_step_of_udim_is_sams_and_the_inconsistency_of_moved_inputs() -> None:
    each = [
        {"sharpness": 0.05, "reach": 0.5, "inconsistency": 2.0},
        {"sharpness": 0.2, "reach": 3.0, "inconsistency": 0.4},
    ]
    training = begun("udim", *(item | {"sam_percent": 0, "batch_size": 7} for item in each))
    batch, before = batch_of(training), [weights(training, k) for k in (0, 1)]
    training.step()
    for k, settings in enumerate(each):
        x, y, w = batch.inputs[1][k].clone().requires_grad_(), batch.target[k], before[k]
        loss = risk(w, x, y)
        slopes = slopes_of(loss, w, graph=True)
        norm = torch.cat([slope.flatten() for slope in slopes.values()]).norm()
        (uphill,) = torch.autograd.grad(loss + settings["sharpness"] * norm, x, retain_graph=True)
        moved = (x + settings["reach"] * F.normalize(uphill, dim=1)).detach()
        climbed = {
            name: (w[name] + settings["sharpness"] * slopes[name] / norm).detach().requires_grad_() for name in w
        }
        flat = slopes_of(risk(climbed, x.detach(), y), climbed)

        def of_rows(inputs: Tensor, w: Weights = w, y: Tensor = y) -> Tensor:
            """Each row's gradient by the head, one by one."""
            result = []
            for row, label in zip(inputs, y, strict=True):
                own = risk(w, row[None], label[None])
                parts = torch.autograd.grad(own, [w["head.weight"], w["head.bias"]], create_graph=True)
                result.append(torch.cat([part.flatten() for part in parts]))
            return torch.stack(result)

        here, there = of_rows(x.detach()), of_rows(moved)
        apart = (here.var(0, unbiased=False) - there.var(0, unbiased=False)).square().mean() / 4
        punished = slopes_of(apart + there.square().mean(), w)
        for name, value in weights(training, k).items():
            step = flat[name] + settings["inconsistency"] * punished[name]
            assert close(value, w[name] - 0.1 * step)


def test_udim_begins_with_plain_sharpness_aware_steps() -> None:
    warm = begun("udim", {"sam_percent": 100})
    sam = begun("erm", {"sharpness": 0.05})
    for training in (warm, sam):
        for _ in range(3):
            training.step()
    assert all(torch.equal(value, weights(sam, 0)[name]) for name, value in weights(warm, 0).items())


def test_udim_forgets_adams_moments_when_its_penalty_begins() -> None:
    training = begun("udim", {"sam_percent": 50}, common={"batch_size": SHARE, "width": 6}, steps=4)
    steps = []
    for _ in range(4):
        training.step()
        steps.append(training.optimiser_steps["main"].optimiser.state()["steps"])
    assert steps == [1, 2, 1, 2]
