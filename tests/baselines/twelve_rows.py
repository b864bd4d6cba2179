"""Small replica stacks whose every step can be computed by hand: a perceptron on twelve rows, in float64, by plain optimiser step."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.recipe import collect_defaults
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from torch import Tensor

from .toys import recipe

ROWS, INPUTS, CLASSES = 12, 4, 3

Weights = list[Tensor]


def settings(algorithm: str, network: str = "mlp", **own: Any) -> dict[str, Any]:
    """An algorithm's settings, with full batches and plain gradient descent at a rate of 0.5 where nothing is said."""
    plain: dict[str, Any] = {"optimiser": "sgd", "momentum": 0.0, "lr": 0.5, "batch_size": 0}
    if network == "mlp":
        plain |= {"width": 5, "depth": 1}
    built = recipe(network, 1, algorithm, **plain | own)
    return collect_defaults(built) | plain | own


def rows(count: int = ROWS, seed: int = 0, classes: int = CLASSES) -> Data:
    """Normal inputs, with labels of a random linear map of which every fourth is wrong."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randn(count, INPUTS, generator=generator, dtype=torch.float64)
    label = (numbers @ torch.randn(INPUTS, classes, generator=generator, dtype=torch.float64)).argmax(1)
    label[::4] = (label[::4] + 1) % classes
    inputs = torch.zeros(count, 0, dtype=torch.int64), numbers
    ones = torch.ones(count)
    return Data(inputs, label[None], ones.long(), ones[None].double())


def stack(
    algorithm: str,
    each: Sequence[Mapping[str, Any]],
    data: Data,
    steps: int = 4,
    network: str = "mlp",
    names: Sequence[str] = (),
    sizes: Sizes | None = None,
) -> ReplicaStack:
    """A replica stack of a replica for each of the settings in `each`."""
    return ReplicaStack(
        network,
        algorithm,
        [settings(algorithm, network, **own) for own in each],
        names or [f"replica {position}" for position in range(len(each))],
        sizes or Sizes(CLASSES, numbers=INPUTS),
        "classification",
        data,
        steps,
        torch.float64,
    )


def weights(network: Any, place: int) -> Weights:
    """A copy of one replica's weights of a perceptron: hidden weight and bias, then the head's."""
    layers = [network.hidden[0], network.head]
    return [p[place].detach().clone().requires_grad_() for layer in layers for p in (layer.weight, layer.bias)]


def answered(some: Weights, x: Tensor) -> Tensor:
    """What a plain perceptron of these weights says."""
    return torch.relu(x @ some[0].T + some[1]) @ some[2].T + some[3]


def descend(some: Weights, loss: Tensor, lr: float = 0.5) -> None:
    """One step of plain gradient descent, in place."""
    gradients = torch.autograd.grad(loss, some)
    with torch.no_grad():
        for weight, gradient in zip(some, gradients, strict=True):
            weight -= lr * gradient
