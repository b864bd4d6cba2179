"""The loss of a small network that thinks in iterations, with its gradient: token by token, without neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch
from farshift.baselines.algorithms.progressive import Algorithm
from farshift.baselines.replicas.hyperparameters import Hyperparameters
from farshift.baselines.replicas.rng import make_keys
from farshift.baselines.training.algorithm import StepState
from farshift.baselines.training.sampler import Batch
from torch import Tensor, nn

from .. import draws, toy

MOST, STEP = 5, 2
"""Iterations in training, and the step whose draws are taken."""


def tokens() -> tuple[Tensor, Tensor]:
    """Six rows of three tokens, (6, 3, INPUTS), and a class above 0 of each, (6, 3)."""
    return toy.inputs().view(6, 3, -1), toy.labels().view(6, 3) + 1


class Thinker(nn.Module):
    """State (.., WIDTH) <- ReLU(A [state, x]); from 0 at first. No axis of replicas."""

    iterations = MOST

    def __init__(self) -> None:
        super().__init__()
        self.recall = nn.Linear(toy.WIDTH + toy.INPUTS, toy.WIDTH, dtype=torch.float64)
        self.head = nn.Linear(toy.WIDTH, toy.CLASSES + 1, dtype=torch.float64)
        toy.fill(self.parameters())

    def begin(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x, x.new_zeros(*x.shape[:-1], toy.WIDTH), torch.ones_like(x[..., :1])

    def think(self, x: Tensor, state: Tensor, seen: Tensor) -> Tensor:
        return torch.relu(self.recall(torch.cat([state, x], dim=-1)))

    def settled(self, state: Tensor, seen: Tensor) -> Tensor:
        return state

    def forward(self, x: Tensor, *_: Any) -> Tensor:
        _, state, seen = self.begin(x)
        for _ in range(MOST):
            state = self.think(x, state, seen)
        logits: Tensor = self.head(state)
        return logits


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`loss`: its value, and then its gradient."""
    network, (x, y) = Thinker(), tokens()
    about: Any = SimpleNamespace()
    algorithm = Algorithm(Hyperparameters([{"sharpness": 0.0, **settings}], torch.float64), about)
    batch = Batch((x[None],), y[None], torch.arange(len(x))[None])
    loss = algorithm.loss(network, batch, StepState(STEP, 3, 0, STEP, make_keys([draws.NAME])))
    return {"loss": toy.loss_and_gradient(loss, [*network.parameters()])}
