"""AND-mask: a step along those coordinates alone on whose sign the environments' gradients agree.

    g_k = mean_e g_e,k  where |mean_e sign g_e,k| >= agreement, else 0

As in the authors' code, each parameter's g is then divided by the share of its coordinates that are left, and with
momentum a masked coordinate still moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.hyperparameters import Hyperparameters
from ..training.algorithm import About, Clock
from ..training.algorithm import Algorithm as Base
from ..training.optimiser_step import OptimiserStep
from ..training.sampler import Batch
from ._environment_risks import risks, risks_and_gradients

KIND = "domain"
CITATION = (
    "Parascandolo, Neitz, Orvieto, Gresele and Schoelkopf, Learning Explanations that are Hard to Vary, ICLR 2021 "
    "(arXiv:2009.00329)"
)
TASKS = ("classification", "sequence")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"agreement": 1.0, "batch_size": 32}
"""agreement: tau, the least |mean sign| of a coordinate that moves, 0 .. 1; DomainBed's default."""
SEARCH: dict[str, Any] = {"agreement": ["uniform", 0.5, 1.0]}

EPSILON = 1e-6
"""Below what a sum of signs can differ by, above its rounding: 8 environments against 2 meet an agreement of .6."""


def masked(each: Tensor, agreement: Tensor) -> Tensor:
    """The gradients of one parameter in every environment, (K, E, ..), as one to follow, (K, ..)."""
    least = agreement.view(-1, *[1] * (each.ndim - 2)) - EPSILON
    agreed = (each.sign().mean(1).abs() >= least).to(each.dtype)
    share = agreed.flatten(1).mean(1) if agreed.ndim > 1 else agreed
    return each.mean(1) * agreed / share.clamp(min=1e-10).view(-1, *[1] * (agreed.ndim - 1))


class Algorithm(Base):
    by_environment = True

    def __init__(self, hyperparameters: Hyperparameters, about: About) -> None:
        super().__init__(hyperparameters, about)
        if any(hyperparameters.exact("sharpness")):
            raise ModelError("setting sharpness: and_mask steps along gradients of its own making: leave it at 0")

    def loss(self, network: Any, batch: Batch, clock: Clock) -> Tensor:
        """The mean risk, which is watched; what is followed is its gradient with the disagreeing entries masked."""
        return risks(network, batch).mean(1)

    def update(
        self,
        network: Any,
        batches: Callable[[], Iterable[tuple[Batch, Tensor | None]]],
        clock: Clock,
        optimiser_steps: Mapping[str, OptimiserStep],
    ) -> Tensor:
        [(batch, _)] = batches()
        optimiser_step = optimiser_steps["main"]
        found, gradients = risks_and_gradients(network, batch, optimiser_step.parameters)
        with torch.no_grad():
            optimiser_step.follow([masked(one, self.hyperparameters["agreement"]) for one in gradients])
        return found.detach().mean(1)
