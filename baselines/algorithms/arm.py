"""Adaptive risk minimisation with a contextual meta-learner: the network is given the mean features of its test batch.

    c(S) = mean over the rows x' of a support S of g(x');   min  mean over x in S of CE(f(x + c(S)), y)

Each environment's rows in a batch are one support while training; in prediction, the rows that are given together are.
Zhang et al., NeurIPS 2021 (ARM-CML). The paper appends the context to the input; here g is a perceptron on the
network's first representation (`embed`: a vector, or an image with its channels) and is added to it, so that any
classifier can use it. A trap of DomainBed's code that is avoided: it cuts a prediction batch into supports of the
training size (8) whenever that divides it, and uses the whole batch as one support otherwise.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ..networks import RowNetwork
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Build, StepState
from ._perceptron import Perceptron

KIND = "domain"
CITATION = (
    "Zhang et al., Adaptive risk minimization: learning to adapt to domain shift, NeurIPS 2021 (arXiv:2007.02931)"
)
TOUCHES = ("train", "groups", "test batches")
SETTINGS: dict[str, Any] = {"context_width": 64, "batch_size": 8}
"""context_width: hidden units of g. batch_size: rows of a support while training, DomainBed's."""
SEARCH: dict[str, Any] = {"batch_size": ["choice", 8, 16, 32, 64]}


class Contextual(RowNetwork):
    """A classifier whose inputs have the mean of a perceptron over their support added."""

    def __init__(self, network: Any, context: nn.Module) -> None:
        super().__init__()
        self.network, self.context = network, context
        self.width: int = network.width

    @property
    def head(self) -> nn.Module:
        return self.network.head

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """The network's own first representation, (K, n, ..)."""
        return self.network.embed(categories, numbers)

    def encode(self, x: Tensor, supports: int = 1) -> Tensor:
        """Features (K, n, width) of rows (K, n, ..) that are `supports` equal shares, one after the other."""
        rows = self.context(x.flatten(2)).unflatten(1, (supports, -1))
        mean = rows.mean(2, keepdim=True).expand_as(rows).flatten(1, 2)
        return self.network.encode(x + mean.view_as(x))


class Algorithm(BaseAlgorithm):
    by_environment = True
    adapts = True  # the support of a test row is its whole batch

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        sizes, replicas = self.about.sizes, self.about.replicas
        categories = torch.zeros(replicas, 1, len(sizes.categories), dtype=torch.int64)
        with torch.no_grad():
            size = network.embed(categories, torch.zeros(replicas, 1, sizes.numbers))[0].numel()
        widths = [size, self.hyperparameters["context_width"], size]
        return Contextual(network, self.about.each(lambda: Perceptron(widths), "context"))

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        features = network.encode(network.embed(*batch.inputs), batch.environments)
        return average_over_batch(cross_entropy(network.head(features), batch.target), batch)
