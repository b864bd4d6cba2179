"""A row's categories and numbers as one vector."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def encode_dense(values: tuple[int, ...], categories: Tensor, numbers: Tensor) -> Tensor:
    """One-hot categories (K, n, fields), field i with `values[i]` values, and numbers (K, n, width): (K, n, inputs)."""
    if not values:
        return numbers
    hot = [F.one_hot(categories[..., index], size).to(numbers.dtype) for index, size in enumerate(values)]
    return torch.cat([*hot, numbers], dim=-1)
