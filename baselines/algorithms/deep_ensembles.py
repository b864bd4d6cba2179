"""Deep ensembles: the mean prediction of networks with different initial weights and data orders.

The prediction is the mean of the members' probabilities (Lakshminarayanan, Pritzel and Blundell, section 2.4). Members
are trained one after the other, each on all rows, and share the steps equally: for members trained as long as a single
network, multiply the steps by their number. The paper's smoothing by adversarial rows (section 2.3) is left out, as in
most later work; without it the training is that of `erm`.

Not compared with released code: the authors released no code; members are trained as by `erm`, which is compared.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Batches, Build, MakeOptimiserStep, OptimiserSteps, StepState

KIND = "any"
CITATION = (
    "Lakshminarayanan, Pritzel and Blundell, Simple and scalable predictive uncertainty estimation using deep "
    "ensembles, NeurIPS 2017 (arXiv:1612.01474)"
)
SETTINGS: dict[str, Any] = {"members": 5}
"""members: of the ensemble (the paper's), each with an equal share of the steps."""


class Algorithm(BaseAlgorithm):
    additive = True
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
