"""Risks of training environments, and the gradient of each by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..training.losses import average_by_environment, compute_gradients, compute_task_loss, reduce_to_rows
from . import Batch


def compute_environment_risks(network: Any, batch: Batch) -> Tensor:
    """The mean loss (`compute_task_loss`) of each environment of the batch, (K, E)."""
    return average_by_environment(reduce_to_rows(compute_task_loss(network(*batch.inputs), batch.target), batch), batch)


def split_by_environment(batch: Batch) -> Iterator[Batch]:
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


def compute_risks_and_gradients(
    network: Any, batch: Batch, parameters: Sequence[Tensor], create_graph: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """The risk of each environment, (K, E), and its gradient by each parameter, (K, E, ..) each.

    Environments pass through the network one by one, so that no gradient is taken through another's rows."""
    each_risk, each_gradient = [], []
    for alone in split_by_environment(batch):
        risk = compute_environment_risks(network, alone)[:, 0]
        each_gradient.append(compute_gradients(risk, list(parameters), create_graph))
        each_risk.append(risk)
    return torch.stack(each_risk, dim=1), [
        torch.stack(parameter_gradients, dim=1) for parameter_gradients in zip(*each_gradient, strict=True)
    ]
