"""Classifier re-training (cRT): the head is trained again with balanced classes on frozen features.

1. The network is trained by empirical risk on rows as they come, for `first_percent` of the steps.
2. The head begins with fresh weights and goes on alone; every class counts alike: a row's weight is divided by that of
   all rows with its label. Features are those of evaluation.

Kang et al., ICLR 2020, section 4.1. Rows are drawn by these weights, or a full batch is averaged by them; the released
sampler draws classes in turn.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..replicas.rng import Rng
from ..training.losses import average_over_batch, cross_entropy
from . import Batch, Batches, Build, Data, EmpiricalRisk, MakeOptimiserStep, OptimiserSteps, StepState
from ._head import read_head_shape
from ._plain import TwoStages, use_evaluation_mode
from ._weights import RunningMean

KIND = "domain"
CITATION = (
    "Kang, Xie, Rohrbach, Yan, Gordo, Feng and Kalantidis, Decoupling representation and classifier for long-tailed "
    "recognition, ICLR 2020 (arXiv:1910.09217)"
)
SETTINGS: dict[str, Any] = {"first_percent": 90}
"""first_percent: of the steps, for the features (90 epochs of 100 there)."""
SEARCH: dict[str, Any] = {"first_percent": ["choice", 50, 80, 90]}


class Algorithm(TwoStages, EmpiricalRisk):
    def assemble(self, build: Build) -> Any:
        network = build("weights")
        read_head_shape(network)
        self.fresh = RunningMean(list(build("weights of the new head").head.parameters())).to(
            self.hyperparameters["lr"]
        )
        self.rng: Rng | None = None
        return network

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        with torch.no_grad():
            for parameter, value in zip(network.head.parameters(), self.fresh.values, strict=True):
                parameter.copy_(value)
        sets = max(len(data.target), len(data.weight))
        target, weight = data.target.expand(sets, -1), data.weight.double().expand(sets, -1)
        total = torch.zeros(sets, self.about.outputs, dtype=weight.dtype, device=weight.device)
        total.scatter_add_(1, target, weight)
        own = total.gather(1, target)
        return data.changed(torch.where(own > 0, weight / own, 0.0), data.target), False

    def optimiser_steps(self, network: nn.Module, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        head: Any = network.head
        return {
            "main": optimiser_step(list(network.parameters()), "lr"),
            "head": optimiser_step(list(head.parameters()), "lr"),
        }

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        if clock.stage == 0:
            return super().loss(network, batch, clock)
        with torch.no_grad(), use_evaluation_mode(network, self.rng):
            features = network.encode(network.embed(*batch.inputs))
        return average_over_batch(cross_entropy(network.head(features), batch.target), batch)

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        which = "main" if clock.stage == 0 else "head"
        return super().update(network, batches, clock, {"main": optimiser_steps[which]})
