"""Algorithms: one file each, its name the recipe's `algorithm`. `training/algorithm.py` says what a file holds; what
most files need is imported from here."""

from typing import Any

from torch import Tensor

from ..training.algorithm import Algorithm as BaseAlgorithm
from ..training.algorithm import AlgorithmContext, Batches, Build, MakeOptimiserStep, OptimiserSteps, StepState
from ..training.losses import average_over_batch, compute_task_loss
from ..training.sampler import Batch, Data

__all__ = [
    "AlgorithmContext",
    "BaseAlgorithm",
    "Batch",
    "Batches",
    "Build",
    "Data",
    "EmpiricalRisk",
    "MakeOptimiserStep",
    "OptimiserSteps",
    "StepState",
]


class EmpiricalRisk(BaseAlgorithm):
    """The mean over a batch of each target's error, by default the task's own loss."""

    additive = True

    def errors(self, logits: Tensor, target: Tensor, clock: StepState) -> Tensor:
        """The error of each target, in its shape."""
        return compute_task_loss(logits, target)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        return average_over_batch(self.errors(network(*batch.inputs), batch.target, clock), batch)
