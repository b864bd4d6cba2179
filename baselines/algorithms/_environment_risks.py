"""Risks of training environments, and the gradient of each by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..training.losses import by_environment, gradients, of_rows, task_loss
from ..training.sampler import Batch


def risks(network: Any, batch: Batch) -> Tensor:
    """The mean loss (`task_loss`) of each environment of the batch, (K, E)."""
    return by_environment(of_rows(task_loss(network(*batch.inputs), batch.target), batch), batch)


def apart(batch: Batch) -> Iterator[Batch]:
    """The batch of each environment alone."""
    share = batch.target.shape[1] // batch.environments
    for start in range(0, batch.environments * share, share):
        some = slice(start, start + share)
        yield replace(
            batch,
            inputs=tuple(x[:, some] for x in batch.inputs),
            target=batch.target[:, some],
            rows=batch.rows[:, some],
            group=None if batch.group is None else batch.group[:, some],
            environments=1,
        )


def risks_and_gradients(
    network: Any, batch: Batch, parameters: Sequence[Tensor], create_graph: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """The risk of each environment, (K, E), and its gradient by each parameter, (K, E, ..) each.

    Environments pass through the network one by one, so that no gradient is taken through another's rows."""
    each_risk, each_gradient = [], []
    for alone in apart(batch):
        risk = risks(network, alone)[:, 0]
        each_gradient.append(gradients(risk, list(parameters), create_graph))
        each_risk.append(risk)
    return torch.stack(each_risk, dim=1), [torch.stack(one, dim=1) for one in zip(*each_gradient, strict=True)]
