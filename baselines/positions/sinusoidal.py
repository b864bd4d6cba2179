"""Sinusoids of geometrically spaced wavelengths, added to the input.

Vaswani et al., NeurIPS 2017 (arXiv:1706.03762), section 3.5, with all sines before all cosines.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from . import Position, compute_positions


def compute_sinusoids(places: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """The vectors of places (..), whole or not: (.., width)."""
    exact = torch.promote_types(dtype, torch.float32)  # half precision cannot count to a thousand
    pace = torch.exp(torch.arange(0, width, 2, dtype=exact, device=places.device) * (-math.log(10_000.0) / width))
    angles = places.to(exact)[..., None] * pace
    return torch.cat([angles.sin(), angles.cos()], dim=-1)[..., :width].to(dtype)


class Encoding(Position):
    def __init__(self, settings: Mapping[str, Any], causal: bool) -> None:
        super().__init__(settings, causal)
        self.width = settings["width"]

    def added(self, x: Tensor, first: int = 0, skipped: Tensor | None = None, columns: Tensor | None = None) -> Tensor:
        return x + compute_sinusoids(compute_positions(first, x.shape[-2], skipped, x.device), self.width, x.dtype)
