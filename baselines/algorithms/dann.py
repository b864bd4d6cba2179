"""Domain-adversarial training: features that do not reveal the environment.

    network:        min  CE(y) - lambda D        D = CE(environment | discriminator(z)), z = features
    discriminator:  min  D + gamma mean |d CE / d z|^2

Ganin et al., JMLR 2016, with an optimiser for the discriminator as in DomainBed (Gulrajani and Lopez-Paz, ICLR 2021,
arXiv:2007.01434), whose defaults and ranges are these. Traps of that code that are avoided:
- it spends d of every d + 1 steps on the discriminator alone, so that the network trains for a fraction of the steps;
  here each step trains the discriminator d times and then the network, on the same rows;
- its network also descends along minus the gradient penalty, which is there to smooth the discriminator.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ..training.losses import average_over_batch, compute_task_loss, cross_entropy
from ..training.optimiser_step import exclude_parameters
from . import BaseAlgorithm, Batch, Batches, Build, MakeOptimiserStep, OptimiserSteps, StepState
from ._perceptron import make_discriminator

KIND = "domain"
CITATION = "Ganin et al., Domain-adversarial training of neural networks, JMLR 2016 (arXiv:1505.07818)"
TASKS = ("classification", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {
    "adversary": 1.0,
    "lr_discriminator": 1e-3,
    "discriminator_steps": 1,
    "gradient_penalty": 0.0,
    "discriminator_width": 256,
    "discriminator_depth": 3,
    "batch_size": 32,
    "beta1": 0.5,
    "beta2": 0.9,
}
"""adversary: lambda. lr_discriminator: DomainBed's for small images, as the network's lr. discriminator_steps: d.
gradient_penalty: gamma. discriminator_depth: its layers. beta1 and beta2: Adam's, of network and discriminator."""
SEARCH: dict[str, Any] = {
    "adversary": ["log10", -2, 2],
    "lr_discriminator": ["log10", -4.5, -2.5],
    "discriminator_steps": ["choice", 1, 2, 4, 8],
    "gradient_penalty": ["log10", -2, 1],
    "beta1": ["choice", 0.0, 0.5],
}


class Algorithm(BaseAlgorithm):
    by_environment = True

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        network.discriminator = make_discriminator(
            self.hyperparameters, self.about, network.width, self.about.environments
        )
        return network

    def adversaries(self, network: Any) -> list[nn.Parameter]:
        """The parameters that are trained against the rest."""
        return [*network.discriminator.parameters()]

    def optimiser_steps(self, network: nn.Module, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        against = self.adversaries(network)
        return {
            "main": optimiser_step(exclude_parameters(network, against), "lr"),
            "discriminator": optimiser_step(against, "lr_discriminator"),
        }

    def read(self, network: Any, features: Tensor, target: Tensor) -> Tensor:
        """The discriminator's inputs, (K, n, width)."""
        return features

    def average(self, errors: Tensor, batch: Batch) -> Tensor:
        """The discriminator's errors on rows (K, n) as one loss, (K,)."""
        return average_over_batch(errors, batch)

    def domain_errors(self, network: Any, read: Tensor, batch: Batch) -> Tensor:
        """The cross-entropy of each row's environment, (K, n)."""
        assert batch.group is not None
        return cross_entropy(network.discriminator(read), batch.group)

    def discriminator_loss(self, network: Any, features: Tensor, batch: Batch) -> Tensor:
        """The discriminator's loss on fixed features, (K,)."""
        read = self.read(network, features, batch.target)
        if not any(self.hyperparameters.exact("gradient_penalty")):
            return self.average(self.domain_errors(network, read, batch), batch)
        read = read if read.requires_grad else read.requires_grad_()
        errors = self.domain_errors(network, read, batch)
        (slopes,) = torch.autograd.grad(errors.sum(), read, create_graph=True)
        penalty = slopes.square().sum(-1).mean(1)
        return self.average(errors, batch) + self.hyperparameters["gradient_penalty"] * penalty

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        features = network.encode(network.embed(*batch.inputs))
        risk = average_over_batch(compute_task_loss(network.head(features), batch.target), batch)
        errors = self.domain_errors(network, self.read(network, features, batch.target), batch)
        return risk - self.hyperparameters["adversary"] * self.average(errors, batch)

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        ((batch, _),) = batches()
        with torch.no_grad():
            features = network.encode(network.embed(*batch.inputs))
        for _ in range(self.hyperparameters["discriminator_steps"]):
            optimiser_steps["discriminator"].step(lambda: self.discriminator_loss(network, features.detach(), batch))
        return optimiser_steps["main"].step(lambda: self.loss(network, batch, clock))
