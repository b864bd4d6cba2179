"""Rotary position embedding: queries and keys are rotated by their positions, so that scores depend on distances alone.

Su et al. 2021 (arXiv:2104.09864), equation 15, with a feature of the first half paired with one of the second instead
of neighbours: another order of the same features.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from . import Position


class Encoding(Position):
    def __init__(self, settings: Mapping[str, Any], causal: bool) -> None:
        super().__init__(settings, causal)
        width, heads = settings["width"], settings["heads"]
        if width % (2 * heads):
            raise ModelError(
                f"rope turns pairs of features: width = {width} must be a multiple of 2 * heads = {2 * heads}"
            )

    def turned(self, x: Tensor, first: int = 0) -> Tensor:
        count, width = x.shape[-2:]
        exact = torch.promote_types(x.dtype, torch.float32)
        pace = torch.exp(torch.arange(0, width, 2, dtype=exact, device=x.device) * (-math.log(10_000.0) / width))
        angles = torch.arange(first, first + count, dtype=exact, device=x.device)[:, None] * pace
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
