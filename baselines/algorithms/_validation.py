"""The risk on labelled rows that are held out of training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..replicas.rng import Rng
from ..training.losses import average_over_batch, compute_task_loss
from . import Batch, Data
from ._plain import use_evaluation_mode


@torch.no_grad()
def compute_logits(network: Any, data: Data, replicas: int, rng: Rng | None, rows: int = 512) -> Tensor:
    """Logits of each replica in evaluation for rows that all replicas share, (K, N, outputs)."""
    pieces = []
    with use_evaluation_mode(network, rng):
        for start in range(0, len(data), rows):
            some = (x[start : start + rows] for x in data.inputs)
            pieces.append(network(*(x.expand(replicas, *x.shape) for x in some)))
    return torch.cat(pieces, dim=1)


@torch.no_grad()
def compute_validation_risk(network: Any, data: Data, replicas: int, rng: Rng | None) -> Tensor:
    """The mean loss (`compute_task_loss`) of each replica on held-out rows, (K,)."""
    logits = compute_logits(network, data, replicas, rng)
    target = data.target.expand(replicas, *data.target.shape[1:])
    rows = torch.arange(len(data), device=target.device).expand(replicas, -1)
    return average_over_batch(compute_task_loss(logits, target), Batch((), target, rows))
