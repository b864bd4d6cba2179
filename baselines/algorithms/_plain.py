"""Shared code of algorithms that train by empirical risk and differ in what they do around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..replicas.rng import Rng
from ..training.losses import average_over_batch, compute_task_loss
from . import BaseAlgorithm, Batch, StepState


class Plain(BaseAlgorithm):
    """Empirical risk: the mean loss."""

    additive = True

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        return average_over_batch(compute_task_loss(network(*batch.inputs), batch.target), batch)


def compute_step_share(steps: int, percent: int, what: str) -> int:
    """A share of the steps, with at least one step on either side; `ModelError` if there are not two."""
    if steps < 2:
        raise ModelError(f"{what} trains in two parts and has {steps} step: give 2 or more")
    return min(steps - 1, max(1, round(steps * percent / 100)))


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


@torch.no_grad()
def compute_shared_features(
    network: Any, inputs: Sequence[Tensor], replicas: int, rng: Rng | None, rows: int = 512
) -> Tensor:
    """Features in evaluation of inputs (N, ..) that all replicas share, which may be streamed: (K, N, width)."""
    pieces = []
    for start in range(0, len(inputs[0]), rows):
        some = (x[start : start + rows] for x in inputs)
        pieces.append(compute_own_features(network, [x.expand(replicas, *x.shape) for x in some], rng, rows))
    return torch.cat(pieces, dim=1)


@torch.no_grad()
def compute_own_features(network: Any, inputs: Sequence[Tensor], rng: Rng | None, rows: int = 512) -> Tensor:
    """Features in evaluation of each replica's own inputs (K, N, ..): (K, N, width)."""
    with use_evaluation_mode(network, rng):
        pieces = zip(*(torch.split(x, rows, dim=1) for x in inputs), strict=True)
        return torch.cat([network.encode(network.embed(*piece)) for piece in pieces], dim=1)
