"""Fish: gradient matching between environments, by successive inner steps on each of them.

    theta~ = theta after one inner step on each environment in random order;  theta <- theta + epsilon (theta~ - theta)

which to first order raises the inner products of the environments' gradients (Shi et al., ICLR 2022, Fish). The inner
optimiser's moments are carried from step to step. A trap of DomainBed's code that is avoided: it visits the
environments in one fixed order; the algorithm permutes them, here anew for each replica and step.
"""

from typing import Any

import torch
from torch import Tensor

from ..replicas.rng import draw_permutations
from ..training.losses import average_over_batch, compute_task_loss
from ..training.optimiser_step import OptimiserStep
from . import BaseAlgorithm, Batch, Batches, OptimiserSteps, StepState
from ._environments import select_environments

KIND = "domain"
CITATION = "Shi et al., Gradient matching for domain generalization, ICLR 2022 (arXiv:2104.09937)"
TASKS = ("classification", "sequence", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"meta_lr": 0.5, "batch_size": 32}
"""meta_lr: epsilon."""
SEARCH: dict[str, Any] = {"meta_lr": ["choice", 0.05, 0.1, 0.5]}


class Algorithm(BaseAlgorithm):
    by_environment = True

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        return average_over_batch(compute_task_loss(network(*batch.inputs), batch.target), batch)

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        ((batch, _),) = batches()
        order = draw_permutations(clock.draw("order"), batch.environments)
        parts = [select_environments(batch, which[:, None]) for which in order.unbind(1)]
        optimiser_step = optimiser_steps["main"]
        start = [parameter.detach().clone() for parameter in optimiser_step.parameters]
        losses = torch.stack([self._inner(network, part, clock, optimiser_step) for part in parts])
        with torch.no_grad():
            for parameter, before in zip(optimiser_step.parameters, start, strict=True):
                parameter.copy_(before + self.hyperparameters.on("meta_lr", before) * (parameter - before))
        return losses.mean(0)

    def _inner(self, network: Any, part: Batch, clock: StepState, optimiser_step: OptimiserStep) -> Tensor:
        return optimiser_step.step(lambda: self.loss(network, part, clock))
