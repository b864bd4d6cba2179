"""A small perceptron beside the network: a discriminator, a context."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from ..layers.linear import Linear
from ..replicas.hyperparameters import Hyperparameters
from . import AlgorithmContext


class Perceptron(nn.Module):
    """(K, n, .., widths[0]) to (K, n, .., widths[-1]), with ReLU between the layers."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Linear(before, after) for before, after in pairwise(widths))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


def make_discriminator(
    hyperparameters: Hyperparameters, about: AlgorithmContext, inputs: int, outputs: int
) -> Perceptron:
    """A discriminator of `outputs` domains from `inputs` features, of `discriminator_depth` layers with
    `discriminator_width` hidden units."""
    hidden = [hyperparameters["discriminator_width"]] * (hyperparameters["discriminator_depth"] - 1)
    return about.each(lambda: Perceptron([inputs, *hidden, outputs]), "discriminator")
