"""A learned vector for each position, added to the input.

Gehring et al., ICML 2017 (arXiv:1705.03122); Radford et al. 2018 (GPT). A place that no training row reached keeps its
random initial vector; a place beyond `position_range` raises an error.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from . import Position, compute_positions


class Encoding(Position):
    """table: (K, position_range, width), normal at first, with the power of sinusoids (a mean square of 1/2)."""

    def __init__(self, settings: Mapping[str, Any], causal: bool) -> None:
        super().__init__(settings, causal)
        self.table = nn.Parameter(torch.randn(1, settings["position_range"], settings["width"]) * 0.5**0.5)

    def added(self, x: Tensor, first: int = 0, skipped: Tensor | None = None, columns: Tensor | None = None) -> Tensor:
        """`ModelError` for a column beyond `position_range`."""
        known, needed = self.table.shape[1], first + x.shape[-2]
        if needed > known:
            raise ModelError(
                f"learned positions: a text of {needed} tokens, but the setting position_range = {known}: raise it"
            )
        if skipped is None:
            return x + self.table[:, None, first:needed]
        replicas = torch.arange(len(self.table), device=x.device)[:, None, None]
        return x + self.table[replicas, compute_positions(first, x.shape[-2], skipped, x.device)]
