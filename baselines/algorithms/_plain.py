"""What algorithms that train by empirical risk do around it: stages, and features and risks in evaluation."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..replicas.rng import Rng
from ..training.losses import average_over_batch, compute_task_loss
from . import BaseAlgorithm, Batch, Data


def split_steps(steps: int, percent: int, what: str) -> tuple[int, int]:
    """The steps of a first stage, a share of all, and of a second, at least one each; `ModelError` if there are not
    two."""
    if steps < 2:
        raise ModelError(f"{what} trains in two parts and has {steps} step: give 2 or more")
    first = min(steps - 1, max(1, round(steps * percent / 100)))
    return first, steps - first


class TwoStages(BaseAlgorithm):
    """Training in two stages, the first of a share of the steps."""

    first_stage = "first_percent"
    """The setting with this share, in percent."""

    def stages(self, steps: int) -> tuple[int, ...]:
        return split_steps(steps, self.hyperparameters[self.first_stage], self.about.algorithm)


@contextmanager
def use_evaluation_mode(network: nn.Module, rng: Rng | None) -> Iterator[None]:
    """The network as in evaluation, nothing drawn at random."""
    before = network.training
    network.eval()
    try:
        with nullcontext() if rng is None else rng.disabled():
            yield
    finally:
        network.train(before)


def iterate_shared_rows(inputs: Sequence[Tensor], replicas: int, rows: int = 512) -> Iterator[tuple[Tensor, ...]]:
    """Inputs (N, ..) that all replicas share, which may be streamed, some rows after the other: (K, n, ..) each."""
    for start in range(0, len(inputs[0]), rows):
        some = (x[start : start + rows] for x in inputs)
        yield tuple(x.expand(replicas, *x.shape) for x in some)


@torch.no_grad()
def compute_shared_features(network: Any, inputs: Sequence[Tensor], replicas: int, rng: Rng | None) -> Tensor:
    """Features in evaluation of inputs (N, ..) that all replicas share: (K, N, width)."""
    with use_evaluation_mode(network, rng):
        pieces = iterate_shared_rows(inputs, replicas)
        return torch.cat([network.encode(network.embed(*piece)) for piece in pieces], dim=1)


@torch.no_grad()
def compute_shared_logits(network: Any, data: Data, replicas: int, rng: Rng | None) -> Tensor:
    """Logits of each replica in evaluation for rows that all replicas share, (K, N, outputs)."""
    with use_evaluation_mode(network, rng):
        return torch.cat([network(*piece) for piece in iterate_shared_rows(data.inputs, replicas)], dim=1)


def compute_validation_risk(network: Any, data: Data, replicas: int, rng: Rng | None) -> Tensor:
    """The mean loss (`compute_task_loss`) of each replica on held-out rows, (K,)."""
    logits = compute_shared_logits(network, data, replicas, rng)
    target = data.target.expand(replicas, *data.target.shape[1:])
    return average_over_batch(compute_task_loss(logits, target), Batch((), target, target))
