"""Conditional domain-adversarial training: features that do not reveal the environment within a class.

As dann.py, with D the mean over classes of the mean CE(environment | discriminator(z + e_y)) over the class's rows, and
e_y a learned vector of class y. Li et al., ECCV 2018 (class priors normalised), with one discriminator that gets the
class in place of one for each, as in DomainBed (ICLR 2021, arXiv:2007.01434).

A trap of that code that is avoided: it divides by the largest class of the batch and one, so that D shrinks with each
class that the batch lacks; here the mean is over the classes that it has.
"""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from ..layers.embedding import Embedding
from . import Batch, Build
from .dann import Algorithm as Unconditional

KIND = "domain"
CITATION = (
    "Li et al., Deep domain generalization via conditional invariant adversarial networks, ECCV 2018"
    " (doi:10.1007/978-3-030-01267-0_38)"
)
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
"""As dann.py's."""
SEARCH: dict[str, Any] = {
    "adversary": ["log10", -2, 2],
    "lr_discriminator": ["log10", -4.5, -2.5],
    "discriminator_steps": ["choice", 1, 2, 4, 8],
    "gradient_penalty": ["log10", -2, 1],
    "beta1": ["choice", 0.0, 0.5],
}


class Algorithm(Unconditional):
    def assemble(self, build: Build) -> Any:
        network = super().assemble(build)
        network.labels = self.about.each(lambda: Embedding(self.about.outputs, network.width), "labels")
        return network

    def adversaries(self, network: Any) -> list[nn.Parameter]:
        return [*super().adversaries(network), *network.labels.parameters()]

    def read(self, network: Any, features: Tensor, target: Tensor) -> Tensor:
        return features + network.labels(target)

    def average(self, errors: Tensor, batch: Batch) -> Tensor:
        own = F.one_hot(batch.target, self.about.outputs).to(errors.dtype)
        counts = own.sum(1)
        sums = (own * errors[..., None]).sum(1)
        return (sums / counts.clamp(min=1)).sum(1) / (counts > 0).sum(1)
