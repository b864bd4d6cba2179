"""ERM++: ERM with the head trained first, weight averaging, and a learning rate that follows the validation loss.

    the first `warm_percent` of the steps train the head alone (LP-FT); then all is trained
    the answer is that of the mean of the weights of all steps after `start_percent`
    at each evaluation the loss of the mean weights on validation rows is computed; if it has not been below
    (1 - 1e-4) times its minimum for two evaluations in a row the rate is divided by 10; the third time, training stops

Teterwak, Saito, Tsiligkaridis, Saenko and Plummer, in the form of DomainBed's `ERMPlusPlus`, whose schedule (torch's
ReduceLROnPlateau, patience 1) this is. That code runs twice: the second run follows the first one's rates, on training
and validation rows. This is the first run: validation rows are not trained on, since selection rules read them. It goes
on averaging the weights of a network that has stopped, where here the mean stays; its loss on validation rows is the
mean over environments, here over rows; its head is alone for a step more than it says. Statistics of batch
normalisation are recomputed (`swa`). For a pretrained network the paper trains them: set `frozen_norm` to false.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..training.optimiser_step import broadcast_values
from . import Batches, Build, Data, EmpiricalRisk, MakeOptimiserStep, OptimiserSteps, StepState
from ._norms import recompute_running_moments
from ._plain import compute_validation_risk
from ._weights import RunningMean, preserve_values

KIND = "domain"
CITATION = (
    "Teterwak, Saito, Tsiligkaridis, Saenko and Plummer, ERM++: an improved baseline for domain generalization, "
    "WACV 2025 (arXiv:2304.01973)"
)
TOUCHES = ("train", "id_val")
SETTINGS: dict[str, Any] = {"warm_percent": 10, "start_percent": 12, "looks": 16, "lr_head": 1e-3}
"""warm_percent, start_percent: of the steps (500 and 600 of 5,000). looks: evaluations on the validation rows, evenly
spaced over training (one in 300 of 5,000 steps). lr_head: the rate of the head alone (DomainBed's is that of the
network, 5e-5 for pretrained ones)."""
SEARCH: dict[str, Any] = {"lr_head": ["log10", -4.5, -2.5]}
LIMITS = {"looks": "at least 1"}

CUTS, PATIENCE, LEAST_GAIN = 3, 1, 1e-4


class Plateau(nn.Module):
    """Each replica's factor of the rate, and when it was last cut."""

    factor: Tensor
    least: Tensor
    waited: Tensor
    cuts: Tensor

    def __init__(self, like: Tensor) -> None:
        super().__init__()
        self.register_buffer("factor", torch.ones_like(like))
        self.register_buffer("least", torch.full_like(like, torch.inf))
        self.register_buffer("waited", torch.zeros_like(like, dtype=torch.int64))
        self.register_buffer("cuts", torch.zeros_like(like, dtype=torch.int64))

    @torch.no_grad()
    def look(self, loss: Tensor) -> None:
        """Update with the losses (K,) of an evaluation."""
        better = loss < self.least * (1 - LEAST_GAIN)
        self.least.copy_(torch.where(better, loss, self.least))
        self.waited.copy_(torch.where(better, 0, self.waited + 1))
        cut = self.waited > PATIENCE
        self.waited.copy_(torch.where(cut, 0, self.waited))
        self.cuts += cut
        self.factor.copy_(torch.where(cut, self.factor / 10, self.factor) * (self.cuts < CUTS))


class Algorithm(EmpiricalRisk):
    def set_up(self) -> None:
        self.validation_rows = self.about.data.held_out["id_val"]
        self.warm, self.start = (
            round(self.about.steps * self.hyperparameters[name] / 100) for name in ("warm_percent", "start_percent")
        )
        self.every = max(1, self.about.steps // self.hyperparameters["looks"])
        self.plateau = Plateau(self.hyperparameters["lr"])

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        self.mean = RunningMean(list(network.parameters())).to(self.hyperparameters["lr"])
        return network

    def optimiser_steps(self, network: Any, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        return {
            "main": optimiser_step(list(network.parameters()), "lr"),
            "head": optimiser_step(list(network.head.parameters()), "lr_head"),
        }

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        if clock.total < self.warm:
            return super().update(network, batches, clock, {"main": optimiser_steps["head"]})
        before = [parameter.detach().clone() for parameter in network.parameters()]
        losses = super().update(network, batches, clock, optimiser_steps)
        with torch.no_grad():  # a step is a multiple of its rate, whatever the optimiser
            for parameter, start in zip(network.parameters(), before, strict=True):
                parameter.copy_(start.lerp(parameter, broadcast_values(self.plateau.factor, start).to(start)))
        return losses

    def after(self, network: Any, clock: StepState) -> None:
        parameters, done = list(network.parameters()), clock.total + 1
        if done >= self.start:
            self.mean.merge(parameters, (self.plateau.factor > 0).long())
        if done > self.warm and done % self.every == 0:
            self.plateau.look(self._risk_of_mean(network, parameters))

    @torch.no_grad()
    def _risk_of_mean(self, network: Any, parameters: list[nn.Parameter]) -> Tensor:
        with preserve_values(parameters):
            self.mean.put(parameters)
            risk = compute_validation_risk(network, self.validation_rows, len(parameters[0]), self.rng)
        return risk.to(self.plateau.factor)

    def finish(self, network: Any, data: Data, answer: Callable[..., Tensor]) -> None:
        self.mean.put(list(network.parameters()))
        recompute_running_moments(network, data)
