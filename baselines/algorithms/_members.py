"""Ensembles whose members are trained one after the other, and whose prediction is the mean of their probabilities."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Batches, Build, MakeOptimiserStep, OptimiserSteps, StepState


class Members(BaseAlgorithm):
    """Empirical risk of `members` networks with different initial weights, each with an equal share of the steps."""

    begun: Tensor
    """How many members have been trained so far, (K,)."""

    def set_up(self) -> None:
        members, steps = self.hyperparameters["members"], self.about.steps
        if not 1 <= members <= steps:
            raise ModelError(f"{self.about.algorithm}: setting members = {members}: use 1 to {steps}, the steps")
        self.register_buffer("begun", torch.ones(self.about.replicas, dtype=torch.int64))

    def assemble(self, build: Build) -> Any:
        return nn.ModuleList(build(f"member/{index}") for index in range(self.hyperparameters["members"]))

    def stages(self, steps: int) -> tuple[int, ...]:
        each, remainder = divmod(steps, self.hyperparameters["members"])
        return tuple(each + (index < remainder) for index in range(self.hyperparameters["members"]))

    def optimiser_steps(self, network: nn.Module, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        return {name: optimiser_step(list(member.parameters()), "lr") for name, member in network.named_children()}

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        return super().update(network, batches, clock, {"main": optimiser_steps[str(clock.stage)]})

    def after(self, network: Any, clock: StepState) -> None:
        self.begun.fill_(clock.stage + 1)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        return average_over_batch(cross_entropy(network[clock.stage](*batch.inputs), batch.target), batch)

    def logits(self, network: Any, *inputs: Tensor) -> Tensor:
        """The logarithm of the sum of the probabilities of the members that have been trained: their mean's softmax."""
        each = [member(*inputs).log_softmax(-1) for member in network[: int(self.begun.max())]]
        return torch.stack(each).logsumexp(0)
