"""Marginal transfer learning: a classifier whose input includes the mean features of the row's environment.

    min  mean_e mean over x in e of CE(h([z(x), m_e]), y),    m_e <- ema mean over x in e of z(x) + (1 - ema) m_e

Blanchard et al., JMLR 2021, where the kernel mean of an environment's inputs is given to a kernel machine, in the
network's form of DomainBed (Gulrajani and Lopez-Paz, ICLR 2021, arXiv:2007.01434). In prediction m is the mean over the
rows that are given together. A trap of that code that is avoided: since 2022 it overwrites m with normal noise before
the classifier reads it, in training and in prediction. It adds the environments' risks up; here it is their mean.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ..layers.linear import Linear
from ..networks import RowNetwork
from ..training.losses import average_by_environment, cross_entropy, group_by_environment
from . import BaseAlgorithm, Batch, Build, StepState

KIND = "domain"
CITATION = (
    "Blanchard, Deshmukh, Dogan, Lee and Scott, Domain generalization by marginal transfer learning, JMLR 2021 "
    "(arXiv:1711.07910)"
)
TOUCHES = ("train", "groups", "test batches")
SETTINGS: dict[str, Any] = {"ema": 0.99, "batch_size": 32}
"""ema: the share of the batch in an environment's mean; 1 forgets earlier batches (DomainBed's default and range)."""
SEARCH: dict[str, Any] = {"ema": ["choice", 0.5, 0.9, 0.99, 1.0]}


class Marginal(RowNetwork):
    """A classifier of each row's features beside the mean features of the rows given with it."""

    def __init__(self, network: Any, head: nn.Module) -> None:
        super().__init__()
        self.network, self.head = network, head
        del network.head
        self.width: int = 2 * network.width

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """The network's own first representation, (K, n, ..)."""
        return self.network.embed(categories, numbers)

    def features(self, x: Tensor) -> Tensor:
        """The network's own features, (K, n, width / 2)."""
        return self.network.encode(x)

    def beside(self, features: Tensor, means: Tensor) -> Tensor:
        """Features (K, n, d) of equal shares of E environments with their means (K, E, d): (K, n, 2 d)."""
        rows = features.shape[1] // means.shape[1]
        return torch.cat([features, means.repeat_interleave(rows, dim=1)], dim=-1)

    def encode(self, x: Tensor) -> Tensor:
        """Features (K, n, width), the second half the mean over the n rows."""
        own = self.features(x)
        return self.beside(own, own.mean(1, keepdim=True))


class Algorithm(BaseAlgorithm):
    by_environment = True
    adapts = True  # the environment of a test row is its whole batch
    means: Tensor
    _next: Tensor | None = None

    def set_up(self) -> None:
        self.register_buffer("means", torch.zeros(self.about.replicas, self.about.environments, 0))

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        self.means = self.means.new_zeros(len(next(network.parameters())), self.about.environments, network.width)
        self.means = self.means.to(self.hyperparameters["lr"])
        return Marginal(network, self.about.each(lambda: Linear(2 * network.width, self.about.outputs), "head"))

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        features = network.features(network.embed(*batch.inputs))
        ema = self.hyperparameters["ema"][:, None, None]
        means = ema * group_by_environment(features, batch).mean(2) + (1 - ema) * self.means
        # A sharpness-aware step computes the loss twice; the means move once, after it.
        self._next = means.detach()
        errors = cross_entropy(network.head(network.beside(features, means)), batch.target)
        return average_by_environment(errors, batch).mean(1)

    def after(self, network: Any, clock: StepState) -> None:
        assert self._next is not None
        self.means, self._next = self._next, None
