"""How frequent each class is among the training rows."""

from __future__ import annotations

import torch
from torch import Tensor

from . import AlgorithmContext


def compute_log_frequencies(about: AlgorithmContext) -> Tensor:
    """The logarithm of each class's share of the rows' weight, (R, C) for R of one set of rows or one for each replica;
    minus infinity of a class without rows."""
    data = about.data
    sets = max(len(data.target), len(data.weight))
    target, weight = data.target.expand(sets, -1), data.weight.double().expand(sets, -1)
    counts = torch.zeros(sets, about.outputs, dtype=torch.float64, device=weight.device).scatter_add(1, target, weight)
    return (counts / counts.sum(1, keepdim=True)).log()
