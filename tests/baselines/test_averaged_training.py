"""ERM++: a head trained first, a rate that follows validation losses, and the mean of the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.erm_plus_plus import Plateau
from farshift.baselines.training.trainer import Training
from torch import Tensor

from .shifted_stacks import finished, near, wide_rows
from .small_stacks import ADAM, begun, encode, head, weights

STEPS = 24
OWN = {"warm_percent": 25, "start_percent": 50, "looks": 12, "lr_head": 0.3, "lr": 0.4}


def training(*each: dict[str, Any], **own: Any) -> Training:
    return begun("erm_plus_plus", *each, common=ADAM | {"optimiser": "sgd"} | OWN | own, data=wide_rows(), steps=STEPS)


def test_the_rate_is_cut_as_by_torchs_reduction_on_a_plateau_until_the_third_time() -> None:
    losses = np.random.default_rng(1).uniform(0.9, 1, (40, 60)) * np.linspace(1, 0.8, 60)
    plateau = Plateau(torch.ones(40, dtype=torch.float64))
    parameter = torch.nn.Parameter(torch.zeros(()))
    optimisers = [torch.optim.SGD([parameter], lr=1.0) for _ in losses]
    schedules = [torch.optim.lr_scheduler.ReduceLROnPlateau(item, "min", patience=1, eps=0) for item in optimisers]
    stopped = 0
    for position in range(60):
        plateau.look(torch.from_numpy(losses[:, position]))
        for schedule, loss in zip(schedules, losses[:, position], strict=True):
            schedule.step(loss)
        expected = [rate if (rate := item.param_groups[0]["lr"]) > 0.005 else 0.0 for item in optimisers]
        assert plateau.factor.tolist() == pytest.approx(expected)
        stopped = expected.count(0.0)
    assert stopped > 0


def plainly(made: Training, replica: int, lr: float) -> tuple[dict[str, Tensor], list[float]]:
    """The answer of one replica by a plain loop over its batches, and its rate after each step."""
    w = weights(made, replica)
    parameter = torch.nn.Parameter(torch.zeros(()))
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
        stand_in := torch.optim.SGD([parameter], lr=1.0), "min", patience=1, eps=0
    )
    moments = {part: {name: torch.zeros_like(value) for name, value in w.items()} for part in ("head", "all")}
    stored: list[dict[str, Tensor]] = []
    rates = []
    for step in range(STEPS):
        [(batch, _)] = made.sampler.batches(step)
        loss = F.cross_entropy(head(w, encode(w, batch.inputs[1][replica])), batch.target[replica])
        slopes = dict(zip(w, torch.autograd.grad(loss, list(w.values())), strict=True))
        alone = step < 6
        rate = 0.3 if alone else lr * stand_in.param_groups[0]["lr"]
        if not alone and stand_in.param_groups[0]["lr"] < 0.005:
            rate = 0.0
        moment = moments["head" if alone else "all"]
        with torch.no_grad():
            for name, value in w.items():
                if alone and not name.startswith("head"):
                    continue
                moment[name] = 0.9 * moment[name] + slopes[name]
                w[name] = (value - rate * moment[name]).requires_grad_()
            if step + 1 >= 12 and rate > 0:
                stored.append({name: value.detach() for name, value in w.items()})
            mean = {name: torch.stack([item[name] for item in stored]).mean(0) for name in w} if stored else w
            if step + 1 > 6 and (step + 1) % 2 == 0:
                val = made.data.held_out["id_val"]
                schedule.step(F.cross_entropy(head(mean, encode(mean, val.inputs[1])), val.target[0]).item())
        rates.append(rate)
    return mean, rates


def test_the_answer_is_that_of_a_plain_loop_for_each_replica() -> None:
    built = training({"lr": 0.4}, {"lr": 2.0}, {"lr": 0.01}, momentum=0.9)
    expected = [plainly(built, replica, lr) for replica, lr in enumerate((0.4, 2.0, 0.01))]
    assert len({rates[-1] for _, rates in expected}) > 1
    assert any(rates[-1] < 0.9 * lr for (_, rates), lr in zip(expected, (0.4, 2.0, 0.01), strict=True))
    result = dict(finished(built).network.named_parameters())
    for replica, (mean, _) in enumerate(expected):
        for name, value in mean.items():
            assert near(result[name][replica], value), name
