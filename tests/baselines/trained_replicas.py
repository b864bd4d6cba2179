"""Trained replicas of small networks in float64 to be diagnosed, and the same by plain PyTorch."""

from typing import Any

import torch
from farshift.baselines.diagnostics._subject import Subject
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.recipe import resolve_settings
from farshift.baselines.replicas.stacked import select_replicas
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from torch import Tensor, nn

from .toys import recipe

ROWS, WIDTH, CLASSES, HIDDEN = 12, 5, 3, 4
NAMES = ("case/0", "case/1", "case/2")


def stack(network: str, data: Data, sizes: Sizes, names: tuple[str, ...] = NAMES, **settings: Any) -> ReplicaStack:
    """Untrained replicas, as they would stand after training."""
    task = "sequence" if data.target.ndim == 3 else "classification"
    algorithm = settings.pop("algorithm", "erm")
    built = recipe(network, 1, algorithm, **settings)
    each = [resolve_settings(built, "toy/toy") for _ in names]
    result = ReplicaStack(network, algorithm, each, names, sizes, task, data, 1, torch.float64)
    result.ready()
    return result


def numbers(rows: int = ROWS, groups: int = 3, seed: int = 0) -> Data:
    """Rows of numbers in classes and environments."""
    drawn = torch.Generator().manual_seed(seed)
    return Data(
        (torch.zeros(rows, 0, dtype=torch.int64), torch.randn(rows, WIDTH, generator=drawn, dtype=torch.float64)),
        torch.randint(CLASSES, (1, rows), generator=drawn),
        torch.ones(rows, dtype=torch.int64),
        torch.ones(1, rows, dtype=torch.float64),
        torch.arange(rows) % groups,
    )


def mlp(data: Data, names: tuple[str, ...] = NAMES, **settings: Any) -> Subject:
    """Perceptrons of one hidden layer on rows of numbers."""
    built = stack("mlp", data, Sizes(CLASSES, numbers=WIDTH), names, width=HIDDEN, **settings)
    return Subject(built, data, "classification")


def texts(rows: int = 5) -> Data:
    """Rows of texts of 2 to 4 words, EOS the last of each target."""
    drawn = torch.Generator().manual_seed(1)
    lengths = 2 + torch.arange(rows) % 3
    real = torch.arange(4) < lengths[:, None]
    source, target = (torch.randint(4, 8, (rows, 4), generator=drawn) * real for _ in range(2))
    target[torch.arange(rows), lengths - 1] = 2
    return Data((source, target), target[None], lengths, torch.ones(1, rows, dtype=torch.float64))


def plain(subject: Subject, replica: int) -> nn.Sequential:
    """One of the perceptrons as a torch.nn model."""
    model = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES)).double()
    ours = select_replicas(subject.stack.network, [replica])
    for parameter, own in zip(model.parameters(), ours.parameters(), strict=True):
        parameter.data = own[0].detach().clone()
    return model


def row_gradients(subject: Subject, replica: int) -> Tensor:
    """The gradient of each row's cross-entropy by all parameters of a plain model, (n, parameters): a loop."""
    model = plain(subject, replica)
    result = []
    for x, y in zip(subject.data.inputs[1], subject.data.target[0], strict=True):
        loss = nn.functional.cross_entropy(model(x[None]), y[None])
        result.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))]))
    return torch.stack(result)
