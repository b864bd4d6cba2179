"""Three steps of training on the whole toy: the loss of each, and all weights after it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.recipe import resolve_settings
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Batch, Data
from farshift.baselines.training.trainer import Training
from torch import Tensor

from ...toys import recipe
from .. import draws, toy


def ours(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`losses` (3) and `parameters` (3, all weights in the network's own order)."""
    return steps(training(algorithm, settings))


def steps(made: Training, count: int = toy.STEPS) -> dict[str, Any]:
    """What `count` steps of a training come to."""
    losses, parameters = [], []
    for _ in range(count):
        made.step()
        loss = made.losses.item()
        # A stage that ends takes its losses along.
        losses.append(made.outcome.losses[0] if math.isnan(loss) else loss)
        parameters.append(toy.flat(made.stack.network.parameters()))
    return {"losses": losses, "parameters": parameters}


def data(x: Tensor | None = None, y: Tensor | None = None) -> Data:
    """The toy's rows, or others with their labels."""
    x = toy.inputs() if x is None else x
    y = toy.labels() if y is None else y
    nothing = torch.zeros(len(x), 0, dtype=torch.int64)
    even = torch.ones(1, len(x), dtype=torch.float64)
    return Data((nothing, x), y[None], torch.ones(len(x), dtype=torch.int64), even, toy.groups())


def training(
    algorithm: str,
    settings: Mapping[str, Any],
    given: Data | None = None,
    count: int = toy.STEPS,
    network: str = "mlp",
    sizes: Sizes | None = None,
    task: str = "classification",
) -> Training:
    """A training of one replica with the toy's weights, each of whose batches is all rows in their order."""
    given = data() if given is None else given
    plain = {"optimiser": "sgd", "momentum": toy.MOMENTUM, "lr": toy.RATE, "batch_size": 0}
    if network == "mlp":
        plain |= {"width": toy.WIDTH, "depth": 1}
    built = recipe(network, count, algorithm, **plain | dict(settings))
    stack = ReplicaStack(
        network,
        algorithm,
        [resolve_settings(built, "toy/toy", {})],
        [draws.NAME],
        sizes or Sizes(toy.CLASSES, numbers=toy.INPUTS),
        task,
        given,
        count,
        torch.float64,
    )
    toy.fill(stack.network.parameters())
    result = Training(stack, given, count)
    if result.sampler.environments:
        full = in_order(given, result)
        result.sampler.batches = lambda step: iter([(full, None)])  # type: ignore[method-assign]
    return result


def in_order(given: Data, made: Training) -> Batch:
    """All rows as equal shares of their environments."""
    places = torch.arange(len(given)).expand(len(made.stack), -1)
    return replace(made.sampler.select_rows(places), environments=made.sampler.environments)


def batches(made: Training) -> Iterator[Batch]:
    """The batch of each step."""
    for step in range(made.steps):
        for batch, _ in made.batches(step):
            yield batch
