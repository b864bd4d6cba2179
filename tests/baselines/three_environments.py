"""A tiny problem of three environments, trained by a replica stack and by plain loops in torch.nn, one for each replica."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.recipe import resolve_settings
from farshift.baselines.replicas.stacked import select_replicas
from farshift.baselines.training.algorithm import StepState
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.model import Task
from torch import Tensor, nn

from .toys import Rows, recipe

ENVIRONMENTS, ROWS, WIDTH, CLASSES = 3, 6, 5, 3
STEPS = 5

NUMBER = Task("regression", ("x",), "y")

Environments = list[tuple[Tensor, Tensor]]
"""Inputs (n, WIDTH) and labels (n,) of each environment."""

Objective = Callable[[nn.Sequential, Environments, dict[str, Any]], Tensor]
"""A paper's formula: of a plain model, a batch by environment, and the settings of one replica."""


def data(seed: int = 0, weight: Tensor | None = None, regression: bool = False) -> Data:
    """Four batches' worth of rows of each environment, shifted a little from one to the next, with classes, or with numbers
    and a few validation rows."""
    drawn = torch.Generator().manual_seed(seed)
    group = torch.arange(ENVIRONMENTS).repeat_interleave(4 * ROWS)
    numbers = torch.randn(len(group), WIDTH, generator=drawn, dtype=torch.float64) + 0.5 * group[:, None]
    even = torch.ones(1, len(group), dtype=torch.float64)
    nothing, ones = torch.zeros(len(group), 0, dtype=torch.int64), torch.ones(len(group), dtype=torch.int64)
    if not regression:
        label = torch.randint(CLASSES, (1, len(group)), generator=drawn)
        return Data((nothing, numbers), label, ones, even if weight is None else weight, group)
    target = numbers[:, 0] - numbers[:, 1] + torch.randn(len(group), generator=drawn, dtype=torch.float64)
    few = Data((nothing[:5], numbers[:5]), target[None, :5], ones[:5], even[:, :5], group[:5])
    return Data((nothing, numbers), target[None], ones, even, group, held_out={"id_val": few})


def measured(rows: int = 60, seed: int = 0) -> Rows:
    """y = 100 + 30 x_0 - 20 x_1 and noise, in three environments of inputs that lie apart."""
    drawn = np.random.default_rng(seed)
    group = np.arange(rows) % ENVIRONMENTS
    x = drawn.normal(size=(rows, WIDTH)) + 0.5 * group[:, None]
    y = 100 + 30 * x[:, 0] - 20 * x[:, 1] + drawn.normal(size=rows)
    return Rows(x=x.astype(np.float32), y=y, group=group.astype(str))


def training(
    algorithm: str, *each: dict[str, Any], given: Data | None = None, steps: int = STEPS, **common: Any
) -> Training:
    """A training of one replica for each of the settings, in float64 by plain gradient steps with momentum, which unlike
    Adam's depend on the loss's scale."""
    basis = {"width": 4, "batch_size": ROWS, "optimiser": "sgd", "lr": 0.1} | common
    built = recipe("mlp", steps, algorithm, **basis)
    given = data() if given is None else given
    settings = [resolve_settings(built, "toy/toy", item) for item in each]
    names = [f"case/{position}" for position in range(len(each))]
    regression = given.target.is_floating_point()
    sizes, task = Sizes(1 if regression else CLASSES, numbers=WIDTH), "regression" if regression else "classification"
    stack = ReplicaStack("mlp", algorithm, settings, names, sizes, task, given, steps, torch.float64)
    return Training(stack, given, steps)


def training_on_numbers(algorithm: str, *each: dict[str, Any], steps: int = 12, **common: Any) -> Training:
    """The same where labels are numbers, by AdamW."""
    basis = {"optimiser": "adamw", "lr": 0.01} | common
    return training(algorithm, *each, given=data(regression=True), steps=steps, **basis)


def plain(network: Any, replica: int) -> nn.Sequential:
    """One replica of an MLP as a torch.nn model."""
    model = nn.Sequential(nn.Linear(WIDTH, 4), nn.ReLU(), nn.Linear(4, network.head.weight.shape[1])).double()
    ours = select_replicas(network, [replica])
    for parameter, (name, own) in zip(model.parameters(), ours.named_parameters(), strict=True):
        assert own.shape[1:] == parameter.shape, name
        parameter.data = own[0].detach().clone()
    return model


def environments(train: Training, replica: int, step: int) -> Environments:
    """The batch of a step as one replica sees it."""
    [(batch, _)] = train.sampler.batches(step)
    x, y = batch.inputs[1][replica], batch.target[replica]
    count = batch.environments or 1
    return list(zip(x.chunk(count), y.chunk(count), strict=True))


def settings(train: Training, replica: int) -> dict[str, Any]:
    hyperparameters = train.stack.hyperparameters
    return hyperparameters.common | {name: hyperparameters.exact(name)[replica] for name in hyperparameters.names}


def loop(
    train: Training, replica: int, objective: Objective, restarts: Sequence[int] = ()
) -> Iterator[tuple[nn.Sequential, float]]:
    """A plain loop over the batches of one replica: the model and the loss after each step."""
    model, own = plain(train.stack.network, replica), settings(train, replica)

    def fresh() -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=own["lr"], momentum=own["momentum"])

    optimiser = fresh()
    for step in range(STEPS):
        if step in restarts:
            optimiser = fresh()
        loss = objective(model, environments(train, replica, step), own)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        yield model, loss.item()


def assert_trains_as(
    train: Training, objective: Callable[[], Objective], restarts: Sequence[int] = (), within: float = 1e-10
) -> None:
    """Every loss, and the parameters after the last step, are those of a plain loop for each replica. `objective` makes
    one, for it may remember something from step to step."""
    loops = [loop(train, replica, objective(), restarts) for replica in range(len(train.stack))]
    for _ in range(STEPS):
        expected = [next(item) for item in loops]
        train.step()
        assert train.losses.tolist() == pytest.approx([loss for _, loss in expected], rel=within, abs=within)
    for replica, (model, _) in enumerate(expected):
        for own, parameter in zip(train.stack.network.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(own[replica], parameter, rtol=within, atol=within)


def losses(train: Training, step: int = 0) -> Tensor:
    """The losses of a step's batch as the replica stack stands, not taken."""
    [(batch, _)] = train.sampler.batches(step)
    clock = StepState(step, STEPS, 0, step, train.stack.keys)
    result: Tensor = train.stack.algorithm.loss(train.stack.network, batch, clock)
    return result.detach()


def risks(model: nn.Sequential, given: Environments) -> Tensor:
    return torch.stack([F.cross_entropy(model(x), y) for x, y in given])


def flat_gradient(loss: Tensor, parameters: Any) -> Tensor:
    result = torch.autograd.grad(loss, list(parameters), create_graph=True)
    return torch.cat([item.flatten() for item in result])
