"""Objectives of the form risk + weight x penalty over batches that hold equal shares of every environment."""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from . import BaseAlgorithm, Batch, Batches, OptimiserSteps, StepState


class PenalisedRisk(BaseAlgorithm):
    """Risk + `penalty` x penalty."""

    by_environment = True

    @abstractmethod
    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        """The risk and the penalty of a batch, (K,) each."""

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        risk, penalty = self.terms(network, batch, clock)
        return risk + self.hyperparameters["penalty"] * penalty


def check_spread(name: str, least: int) -> None:
    """`ModelError` if an environment has too few rows in a batch to have a variance."""
    if least < 2:
        raise ModelError(
            f"{name} needs the variance of each environment's features, and one has {least} row in a batch: "
            "set batch_size to 2 or more, or leave out environments of a single row"
        )


class AnnealedPenalty(PenalisedRisk):
    """A penalty that is switched to its full weight in the middle of training.

    Settings that every such algorithm has. penalty_before: the weight in the first `anneal_percent` of all steps.
    penalty: the weight after them. restart: forget the optimiser's moments at the switch, for the gradients' size jumps
    there (DomainBed). rescale: divide the loss by a weight above 1 (the IRM authors' ColoredMNIST code). l2: the weight
    in the loss of the squared norm of all parameters, which unlike decoupled decay passes through Adam."""

    def set_up(self) -> None:
        self.decays = any(self.hyperparameters.exact("l2"))

    def switch(self, clock: StepState) -> int:
        """The step from which the penalty has its full weight."""
        percent: int = self.hyperparameters["anneal_percent"]
        return round(percent * clock.steps / 100)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        risk, penalty = self.terms(network, batch, clock)
        weight = self.hyperparameters["penalty" if clock.step >= self.switch(clock) else "penalty_before"]
        total: Tensor = risk + weight * penalty
        if self.decays:
            squares = [parameter.flatten(1).square().sum(1) for parameter in network.parameters()]
            total = total + self.hyperparameters["l2"] * torch.stack(squares).sum(0)
        return total / weight.clamp(min=1) if self.hyperparameters["rescale"] else total

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        if self.hyperparameters["restart"] and clock.step == self.switch(clock):
            optimiser_steps["main"].restart()
        return super().update(network, batches, clock, optimiser_steps)
