"""Steps along the mean gradient of environments, of which some coordinates are left out or made small."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from . import BaseAlgorithm, Batch, Batches, OptimiserSteps, StepState
from ._environment_risks import compute_environment_risks, compute_risks_and_gradients


def average_masked_gradients(each: Tensor, mask: Tensor) -> Tensor:
    """The mean over environments of one parameter's gradients, (K, E, ..), times its mask (K, ..), divided by the mean
    of the mask: what is left out is made up for."""
    share = mask.flatten(1).mean(1) if mask.ndim > 1 else mask
    return each.mean(1) * mask / share.clamp(min=1e-10).view(-1, *[1] * (mask.ndim - 1))


class MaskedGradient(BaseAlgorithm):
    """Descends on `masked` gradients."""

    by_environment = True

    def set_up(self) -> None:
        if any(self.hyperparameters.exact("sharpness")):
            raise ModelError(f"setting sharpness: {self.about.algorithm} computes gradients of its own: leave it at 0")

    @abstractmethod
    def masked(self, each: Tensor) -> Tensor:
        """The gradients of one parameter in every environment, (K, E, ..), as one to follow, (K, ..)."""

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        """The mean risk, which is watched; what is followed is its masked gradient."""
        return compute_environment_risks(network, batch).mean(1)

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        [(batch, _)] = batches()
        optimiser_step = optimiser_steps["main"]
        environment_risks, gradients = compute_risks_and_gradients(network, batch, optimiser_step.parameters)
        with torch.no_grad():
            optimiser_step.follow([self.masked(gradient) for gradient in gradients])
        return environment_risks.detach().mean(1)
