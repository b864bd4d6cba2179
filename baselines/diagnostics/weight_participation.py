"""The inverse participation ratio of weights: 1 if one component has all of a neuron's weight, small if the weight is
spread evenly.

    IPR(w) = sum_j |w_j|^4 / (sum_j |w_j|^2)^2

`weights`: of the weights that enter each neuron, the mean over all neurons of linear, convolutional and recurrent
layers and of a first layer on categories; word and position embeddings are not neurons. `fourier`: for networks with
one hidden layer on categories, of the Fourier components of each hidden neuron's weights from each input and to the
classes, the mean over both: near 1 where a network has learned modular arithmetic by waves, lower where it memorises
(Doshi et al., section 2).
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ..algorithms.ipr_pruning import compute_fourier_ratio, compute_participation_ratio, list_neuron_weights
from ..layers.convolution import Conv2d
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from ..layers.recurrent import Layer
from ._subject import Subject

CITATION = (
    "Doshi, Das, He and Gromov, To grok or not to grok: disentangling generalization and memorization on "
    "corrupted algorithmic datasets, ICLR 2024 (arXiv:2310.13061)"
)
TASKS = ("classification", "sequence")


def measure(subject: Subject) -> dict[str, Tensor]:
    """weights, and fourier if the network has one hidden layer on categories, each (K,)."""
    network: Any = subject.stack.network
    layers = [weights.detach().double() for weights in iterate_entering_weights(network)]
    values = {
        "weights": torch.cat([compute_participation_ratio(weights.square()) for weights in layers], dim=1).mean(1)
    }
    if hasattr(network, "into") and hasattr(network, "starts"):
        every = [compute_fourier_ratio(weights.detach().double()) for weights in list_neuron_weights(network)]
        values["fourier"] = torch.stack(every).mean((0, 2))
    return values


def iterate_entering_weights(network: nn.Module) -> Iterator[Tensor]:
    """The weights that enter the neurons of each layer, (K, neurons, weights)."""
    for name, module in network.named_modules():
        if isinstance(module, Linear | Conv2d):
            yield module.weight.flatten(2)
        elif isinstance(module, Layer):
            yield from (weights.mT.flatten(1, 2) for weights in (module.into, module.again))
        elif isinstance(module, Embedding) and name == "into":
            yield module.weight.mT
