"""How parameters move: clipping, sharpness-aware steps and schedules, each replica by itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from farshift.baselines.replicas.hyperparameters import Hyperparameters
from farshift.baselines.training.optimiser_step import OptimiserStep
from torch import Tensor, nn

BASE: dict[str, Any] = {
    "optimiser": "sgd",
    "momentum": 0.0,
    "nesterov": False,
    "weight_decay": 0.0,
    "schedule": "constant",
    "warmup_percent": 0,
    "clip": 0.0,
    "sharpness": 0.0,
    "lr": 0.1,
}
CURVES = torch.tensor([[1.0, 2.0, 3.0], [4.0, 1.0, 0.5]], dtype=torch.float64)


def made(*each: dict[str, Any]) -> tuple[OptimiserStep, nn.Parameter, nn.Parameter]:
    """A optimiser step of two replicas over two parameters, (2, 3) and (2, 1)."""
    start = torch.tensor([[1.0, -2.0, 0.5], [3.0, 1.0, -1.0]], dtype=torch.float64)
    first, second = nn.Parameter(start.clone()), nn.Parameter(start[:, :1].clone())
    settings = [BASE | own for own in each]
    hyperparameters = Hyperparameters(settings, torch.float64)
    return OptimiserStep([first, second], hyperparameters.exact("lr"), hyperparameters), first, second


def losses(first: Tensor, second: Tensor, curves: Tensor = CURVES) -> Tensor:
    return (curves * first.square()).sum(1) / 2 + second.pow(4).sum(1)


def one_alone(place: int, own: dict[str, Any]) -> list[Tensor]:
    """One step of a single replica, from the formulas."""
    _, first, second = made({}, {})
    w = [p.detach()[place].clone().requires_grad_() for p in (first, second)]

    def gradient(at: list[Tensor]) -> tuple[Tensor, ...]:
        loss = (CURVES[place] * at[0].square()).sum() / 2 + at[1].pow(4).sum()
        return torch.autograd.grad(loss, at)

    result = gradient(w)
    if own.get("sharpness"):
        norm = torch.cat(result).norm()
        moved = [(p + own["sharpness"] * g / norm).detach().requires_grad_() for p, g in zip(w, result, strict=True)]
        result = gradient(moved)
    if own.get("clip"):
        share = min(1.0, own["clip"] / (torch.cat(result).norm().item() + 1e-6))
        result = tuple(g * share for g in result)
    return [(p - own.get("lr", 0.1) * g).detach() for p, g in zip(w, result, strict=True)]


@pytest.mark.parametrize(
    "each",
    [
        ({"clip": 0.5}, {"clip": 1e9}),
        ({"clip": 0.0}, {"clip": 2.0}),
        ({"sharpness": 0.05}, {"sharpness": 0.4}),
        ({"sharpness": 0.0}, {"sharpness": 0.4}),
        ({"sharpness": 0.3, "clip": 1.0, "lr": 0.01}, {"sharpness": 0.1, "clip": 3.0, "lr": 0.2}),
    ],
)
def test_a_replica_is_clipped_and_sharpened_by_its_own_norm_and_settings(each: tuple[dict[str, Any], ...]) -> None:
    optimiser_step, first, second = made(*each)
    optimiser_step.at(0, 10)
    watched = optimiser_step.step(lambda: losses(first, second))
    _, *start = made({}, {})
    assert torch.equal(watched, losses(*start).detach())
    for position, own in enumerate(each):
        for ours, alone in zip((first, second), one_alone(position, own), strict=True):
            torch.testing.assert_close(ours[position], alone, rtol=0, atol=1e-14)


def test_a_sharpness_aware_step_at_a_rate_of_nothing_leaves_every_bit() -> None:
    optimiser_step, first, second = made({"sharpness": 0.3, "lr": 0.0}, {"sharpness": 0.7, "lr": 0.0})
    before = [p.detach().clone() for p in (first, second)]
    optimiser_step.step(lambda: losses(first, second))
    assert torch.equal(first, before[0])
    assert torch.equal(second, before[1])


def test_norms_are_of_all_of_a_replicas_parameters() -> None:
    optimiser_step, first, second = made({}, {})
    losses(first, second).sum().backward()
    flat = torch.cat([first.grad, second.grad], dim=1)  # type: ignore[list-item]
    torch.testing.assert_close(optimiser_step.norms(), flat.norm(dim=1), rtol=0, atol=1e-14)


@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
def test_gradients_that_lie_in_another_order_are_followed_rightly(optimiser: str) -> None:
    """torch's fused optimisers read them as if they lay like the parameter."""
    own = BASE | {"optimiser": optimiser, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
    drawn = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    result = []
    for gradient in (drawn.transpose(1, 2), drawn.transpose(1, 2).contiguous()):
        parameter = nn.Parameter(torch.zeros(2, 6, 5, dtype=torch.float64))
        OptimiserStep([parameter], [0.1, 0.2], Hyperparameters([own, own], torch.float64)).follow([gradient])
        result.append(parameter.detach())
    assert result[0].abs().min() > 0
    assert torch.equal(*result)


def test_a_restart_forgets_the_moments() -> None:
    result = []
    for restarts in (False, True):
        optimiser_step, first, second = made({"momentum": 0.9}, {"momentum": 0.9})
        optimiser_step.step(lambda first=first, second=second: losses(first, second))  # type: ignore[misc]
        if restarts:
            optimiser_step.restart()
        before = first.detach().clone()
        optimiser_step.step(lambda first=first, second=second: losses(first, second))  # type: ignore[misc]
        result.append((before - first.detach()) / (CURVES * before))
    assert (result[0] - 0.1).abs().min() > 0.01
    torch.testing.assert_close(result[1], torch.full_like(CURVES, 0.1), rtol=0, atol=1e-14)


def test_the_rate_rises_over_the_warmup_and_then_follows_the_schedule() -> None:
    optimiser_step, *_ = made(
        {"warmup_percent": 20, "schedule": "linear"}, {"warmup_percent": 20, "schedule": "linear"}
    )
    factors = []
    for step in range(10):
        optimiser_step.at(step, 10)
        factors.append(optimiser_step.factor)
    assert factors == pytest.approx([0.5, 1.0, *(1 - position / 8 for position in range(8))])
