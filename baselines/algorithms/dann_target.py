"""Domain-adversarial adaptation: features from which labelled and shifted rows cannot be distinguished.

    network:        min  CE(y) - lambda D        D = mean over the rows of both of CE(which of the two | d(z))
    discriminator:  min  D                       in the same step, by a gradient that is reversed below d

Both are a batch's labelled rows, and as many inputs of the shifted test rows, without labels. Ganin et al., JMLR 2016,
by its reversed gradient. WILDS (Sagawa et al., ICLR 2022, arXiv:2112.05090) weights D; here lambda weights only the
gradient that reaches the features, since the discriminator has its own learning rate. WILDS normalises the
discriminator's batches and distinguishes all domains; here, as in the paper, there are two. Between training
environments, without shifted rows, it is the algorithm `dann`.
"""

from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..training.losses import average_over_batch, compute_task_loss, cross_entropy
from ..training.optimiser_step import exclude_parameters, step_all
from . import BaseAlgorithm, Batch, Batches, Build, MakeOptimiserStep, OptimiserSteps, StepState
from ._perceptron import make_discriminator
from ._shifted import encode_both_domains

KIND = "domain"
CITATION = "Ganin et al., Domain-adversarial training of neural networks, JMLR 2016 (arXiv:1505.07818)"
TASKS = ("classification", "regression")
TOUCHES = ("train", "unlabelled")
SETTINGS: dict[str, Any] = {
    "adversary": 1.0,
    "lr_discriminator": 1e-3,
    "discriminator_width": 256,
    "discriminator_depth": 3,
}
"""adversary: lambda. lr_discriminator: the discriminator's own rate. discriminator_depth: its layers."""
SEARCH: dict[str, Any] = {"adversary": ["log10", -1, 1], "lr_discriminator": ["log10", -4, -2]}


def reverse_gradient(features: Tensor, weight: Tensor) -> Tensor:
    """The features unchanged, with their gradient reversed and weighted. weight: (K,)."""
    wide = weight.view(-1, 1, 1)
    return (1 + wide) * features.detach() - wide * features


class Algorithm(BaseAlgorithm):
    def set_up(self) -> None:
        if any(self.hyperparameters.exact("sharpness")):
            raise ModelError("setting sharpness: dann_target minimises and maximises in one step: leave it at 0")

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        network.discriminator = make_discriminator(self.hyperparameters, self.about, network.width, 2)
        return network

    def optimiser_steps(self, network: Any, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        against = list(network.discriminator.parameters())
        rest = exclude_parameters(network, against)
        return {"main": optimiser_step(rest, "lr"), "discriminator": optimiser_step(against, "lr_discriminator")}

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        """CE + D; the gradient of D that reaches the features has its sign reversed."""
        source, target = encode_both_domains(network, batch)
        risk = average_over_batch(compute_task_loss(network.head(source), batch.target), batch)
        features = reverse_gradient(torch.cat([source, target], dim=1), self.hyperparameters["adversary"])
        which = torch.cat([torch.zeros_like(source[..., 0]), torch.ones_like(target[..., 0])], dim=1).long()
        return risk + cross_entropy(network.discriminator(features), which).mean(1)

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        ((batch, _),) = batches()
        return step_all(optimiser_steps.values(), lambda: self.loss(network, batch, clock))
