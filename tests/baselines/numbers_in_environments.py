"""A tiny problem whose answers are numbers, in three environments: rows for a harness, and a replica stack's training."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.recipe import resolve_settings
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.model import Task

from .toys import Rows, recipe

ENVIRONMENTS, ROWS, WIDTH = 3, 6, 5
NUMBER = Task("regression", ("x",), "y")


def measured(rows: int = 60, seed: int = 0) -> Rows:
    """y = 100 + 30 x_0 - 20 x_1 and noise, in three environments of inputs that lie apart."""
    drawn = np.random.default_rng(seed)
    group = np.arange(rows) % ENVIRONMENTS
    x = drawn.normal(size=(rows, WIDTH)) + 0.5 * group[:, None]
    y = 100 + 30 * x[:, 0] - 20 * x[:, 1] + drawn.normal(size=rows)
    return Rows(x=x.astype(np.float32), y=y, group=group.astype(str))


def data(seed: int = 0) -> Data:
    """Four batches' worth of rows of each environment."""
    drawn = torch.Generator().manual_seed(seed)
    group = torch.arange(ENVIRONMENTS).repeat_interleave(4 * ROWS)
    numbers = torch.randn(len(group), WIDTH, generator=drawn, dtype=torch.float64) + 0.5 * group[:, None]
    target = numbers[:, 0] - numbers[:, 1] + torch.randn(len(group), generator=drawn, dtype=torch.float64)
    ones = torch.ones(len(group), dtype=torch.int64)
    locked = Data(
        (numbers[:5].long()[:, :0], numbers[:5]), target[None, :5], ones[:5], ones[None, :5].double(), group[:5]
    )
    return Data(
        (numbers.long()[:, :0], numbers), target[None], ones, ones[None].double(), group, held_out={"id_val": locked}
    )


def training(algorithm: str, *each: dict[str, Any], steps: int = 12, **common: Any) -> Training:
    """A training of one replica for each of the settings, in float64."""
    built = recipe("mlp", steps, algorithm, **({"width": 4, "batch_size": ROWS, "lr": 0.01} | common))
    given = data()
    settings = [resolve_settings(built, "toy/toy", item) for item in each]
    names = [f"case/{position}" for position in range(len(each))]
    sizes = Sizes(1, numbers=WIDTH)
    stack = ReplicaStack("mlp", algorithm, settings, names, sizes, "regression", given, steps, torch.float64)
    return Training(stack, given, steps)
