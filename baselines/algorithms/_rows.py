"""Training rows that an algorithm draws by itself."""

from __future__ import annotations

import torch
from torch import Tensor

from ..replicas.rng import draw_uniform


def sample_by_weight(weight: Tensor, keys: Tensor, count: int, share: Tensor | None = None) -> Tensor:
    """Places (K, count) drawn with replacement, each row by its weight (R, N). share: (K,), draw among the first rows
    that have this share of all weight; the row in which it ends has the remaining part of its weight."""
    ends = weight.double().cumsum(1)
    reach = ends[:, -1:] if share is None else ends[:, -1:] * share.double()[:, None]
    where = draw_uniform(keys, (count,), torch.float64) * reach
    indices = torch.searchsorted(ends.expand(len(where), -1).contiguous(), where, right=True)
    return indices.clamp_(max=weight.shape[1] - 1)
