"""Rows of some of a batch's environments."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from . import Batch


def select_environments(batch: Batch, which: Tensor) -> Batch:
    """The rows of the environments that each replica chose, in that order. which: (K, some) numbers of environments;
    the batch must hold equal shares of all."""
    assert batch.environments, "only batches drawn by environment have equal shares of them"
    assert batch.weight is None, "batches drawn by environment have no weights"
    share = batch.rows.shape[1] // batch.environments
    places = (which[..., None] * share + torch.arange(share, device=which.device)).flatten(1)

    def select_rows(values: Tensor) -> Tensor:
        return values[torch.arange(len(places), device=places.device)[:, None], places]

    return replace(
        batch,
        inputs=tuple(select_rows(x) for x in batch.inputs),
        target=select_rows(batch.target),
        rows=select_rows(batch.rows),
        group=None if batch.group is None else select_rows(batch.group),
        environments=which.shape[1],
    )
