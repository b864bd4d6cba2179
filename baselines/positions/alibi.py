"""Attention with linear biases: a score is lowered by the distance times the head's slope.

Press, Smith and Lewis, ICLR 2022 (arXiv:2108.12409). Where later tokens are seen too (an encoder), the distance counts
in both directions alike, as the authors do for encoders (github.com/ofirpress/attention_with_linear_biases).
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from . import Position, compute_distances


def compute_exponents(heads: int) -> list[float]:
    """The binary logarithms of the heads' slopes: -8/h, -16/h .. -8 where h, the number of heads, is a power of 2.
    For another number, those of the power of 2 below it, then every second one of the power above (as the authors')."""
    below = 1 << (heads.bit_length() - 1)
    own = [-8 * (head + 1) / below for head in range(below)]
    between = [-4 * (head + 1) / below for head in range(0, 2 * below, 2)]
    return own + between[: heads - below]


class Encoding(Position):
    exponents: Tensor

    def __init__(self, settings: Mapping[str, Any], causal: bool) -> None:
        super().__init__(settings, causal)
        # Exact in every precision that a network may be moved to, as the slopes themselves are not.
        self.register_buffer("exponents", torch.tensor(compute_exponents(settings["heads"])), persistent=False)

    def bias(self, first: int, count: int) -> Tensor:
        slopes = torch.exp2(self.exponents)[:, None, None]
        return (-slopes * compute_distances(first, count, slopes.device).abs())[None]
