"""Small replica stacks in float64, also with inputs of shifted rows and labelled validation rows, and a plain perceptron of
one replica to compare them with."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.recipe import resolve_settings
from farshift.baselines.training.algorithm import StepState
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Batch, Data
from farshift.baselines.training.trainer import Training
from torch import Tensor

from .toys import recipe

FEATURES, CLASSES, ENVIRONMENTS, SHARE = 5, 3, 3, 4
SMALL = {"lr": 0.1, "batch_size": SHARE, "width": 6}
PLAIN = SMALL | {"optimiser": "sgd", "momentum": 0.0}
"""Plain gradient descent, so that a step shows the gradient."""
ADAM = SMALL | {"lr": 0.01}


def rows(count: int = ENVIRONMENTS * SHARE, sizes: Sizes | None = None) -> Data:
    """Random rows of three environments, one row of each after the other."""
    sizes = sizes or Sizes(CLASSES, numbers=FEATURES)
    built = torch.Generator().manual_seed(5)
    columns = [torch.randint(size, (count,), generator=built) for size in sizes.categories]
    return Data(
        (
            torch.stack(columns, dim=1) if columns else torch.zeros(count, 0, dtype=torch.int64),
            torch.rand(count, sizes.numbers, generator=built, dtype=torch.float64),
        ),
        torch.randint(CLASSES, (1, count), generator=built),
        torch.ones(count, dtype=torch.int64),
        torch.ones(1, count, dtype=torch.float64),
        torch.arange(count) % ENVIRONMENTS,
    )


def begun(
    algorithm: str,
    *each: Mapping[str, Any],
    network: str = "mlp",
    common: Mapping[str, Any] = PLAIN,
    data: Data | None = None,
    sizes: Sizes | None = None,
    steps: int = 10,
    names: Sequence[str] = ("first", "second", "third"),
) -> Training:
    """The training of a replica for each of `each`, which holds its settings."""
    built = recipe(network, steps, algorithm, **common)
    settings = [resolve_settings(built, "toy/toy", item) for item in each]
    sizes = sizes or Sizes(CLASSES, numbers=FEATURES)
    data = data or rows(sizes=sizes)
    task = "regression" if data.target.is_floating_point() else "classification"
    stack = ReplicaStack(network, algorithm, settings, names[: len(each)], sizes, task, data, steps, torch.float64)
    return Training(stack, data, steps)


def batch_of(training: Training) -> Batch:
    """The batch of the step to come."""
    ((batch, _),) = training.sampler.batches(training.total)
    return batch


def clock_of(training: Training) -> StepState:
    """The clock of the step to come."""
    length = training.stages[training.stage]
    return StepState(training.in_stage, length, training.stage, training.total, training.stack.keys)


def weights(training: Training, replica: int) -> dict[str, Tensor]:
    """A replica's parameters by name, without the replica axis, as leaves of a graph of their own."""
    named = training.stack.network.named_parameters()
    return {name: value[replica].detach().clone().requires_grad_() for name, value in named}


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-10) -> bool:
    return torch.allclose(found.detach(), expected.detach(), rtol=0, atol=tolerance)


def moved_along(
    training: Training, before: Sequence[Mapping[str, Tensor]], losses: Sequence[Tensor], lr: float = 0.1
) -> bool:
    """Whether each replica's parameters went from `before` by lr down the gradient of its loss of them."""
    after = [weights(training, replica) for replica in range(len(before))]
    agree = []
    for start, end, loss in zip(before, after, losses, strict=True):
        slopes = torch.autograd.grad(loss, list(start.values()), allow_unused=True)
        for (name, value), slope in zip(start.items(), slopes, strict=True):
            agree.append(close(end[name], value if slope is None else value - lr * slope))
    return all(agree) and any(not torch.equal(start[name], after[0][name]) for start in before[:1] for name in start)


def encode(w: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """Features of rows (n, inputs) of the one-layer perceptron."""
    return torch.relu(x @ w["hidden.0.weight"].T + w["hidden.0.bias"])


def head(w: Mapping[str, Tensor], z: Tensor, name: str = "head") -> Tensor:
    return z @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def perceptron(w: Mapping[str, Tensor], x: Tensor, name: str, depth: int) -> Tensor:
    """A perceptron beside the network."""
    for position in range(depth):
        x = x @ w[f"{name}.layers.{position}.weight"].T + w[f"{name}.layers.{position}.bias"]
        x = torch.relu(x) if position < depth - 1 else x
    return x


def trained(algorithm: str, *each: Mapping[str, Any], steps: int = 6, **more: Any) -> list[dict[str, Tensor]]:
    """Each replica's parameters after training, with AdamW."""
    training = begun(algorithm, *each, common=ADAM, steps=steps, **more)
    while not training.done:
        training.step()
    return [weights(training, replica) for replica in range(len(each))]


IMAGES = Sizes(3, numbers=36, shape=(6, 6))
RESNET: dict[str, Any] = {"widths": [2, 3], "batch_size": 8, "lr": 0.01}
NAMES = ("first", "second", "third")


def wide_rows(count: int = 24, sizes: Sizes | None = None) -> Data:
    """Random rows, with as many validation rows and half as many shifted ones."""
    built = rows(2 * count, sizes)
    first, second = (
        replace(
            built,
            inputs=tuple(x[some] for x in built.inputs),
            target=built.target[:, some],
            lengths=built.lengths[some],
            weight=built.weight[:, some],
            group=built.group[some],  # type: ignore[index]
        )
        for some in (slice(0, count), slice(count, None))
    )
    shifted = (second.inputs[0][::2], 1 - second.inputs[1][::2])
    return replace(first, unlabelled=shifted, held_out={"id_val": second})


def finished(training: Training) -> ReplicaStack:
    """What comes of a training in which every replica reaches the end."""
    ended = training.run().ended
    assert len(ended) == 1
    return ended[0]


def asked(stack: ReplicaStack, data: Data, size: int = 10) -> Tensor:
    """A replica stack's logits for the training rows, `size` of them at a time, (K, N, classes)."""
    return stack.answer(*data.inputs, rows=size)


def steps_of(training: Training) -> Iterator[int]:
    """Each step of a training, before it is made."""
    while not training.done:
        yield training.total
        training.step()
