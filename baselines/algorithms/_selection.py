"""Losses of some rows of a batch: those that an algorithm selects, or weighted by its confidence in them."""

from __future__ import annotations

import torch
from torch import Tensor

from . import Batch


def compute_selected_mean(errors: Tensor, share: Tensor, batch: Batch) -> Tensor:
    """The mean of row errors (K, n), each row counted by its share (K, n) and by its weight in the batch: (K,), 0 where
    nothing counts."""
    weight = share.to(errors.dtype)
    if batch.weight is not None:
        weight = weight * batch.weight.to(errors.dtype)
    total = weight.sum(1)
    return (errors * weight).sum(1) / torch.where(total > 0, total, 1.0)


def select_smallest(errors: Tensor, count: Tensor) -> Tensor:
    """Whether a row is among the `count` (K,) of smallest error (K, n); of equal errors the first are smaller."""
    rank = errors.argsort(dim=1, stable=True).argsort(dim=1)
    return rank < count[:, None]
