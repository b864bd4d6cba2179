"""Randomised positions: in training, sinusoids at random increasing positions from a range longer than any text.

Ruoss et al., ACL 2023 (arXiv:2305.16843): at each step as many places as a replica's rows have columns are drawn from
`position_range` without replacement, and sorted; all rows share them. Places of long texts are thus met in training.

In evaluation places are not drawn but evenly spaced, with the mean distance that the longest training texts had: a
decoder does not know how long its text will be, so a token has the place that it had in training. Longer texts go on at
the same distance, beyond the range.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.rng import Rng, draw_permutations
from . import Position, compute_positions
from .sinusoidal import compute_sinusoids


class Encoding(Position):
    """longest: (K,) int64, the most columns that were drawn for in training."""

    longest: Tensor

    def __init__(self, settings: Mapping[str, Any], causal: bool) -> None:
        super().__init__(settings, causal)
        self.width, self.range = settings["width"], settings["position_range"]
        self.register_buffer("longest", torch.ones(1, dtype=torch.int64))
        self.rng: Rng | None = None

    def added(self, x: Tensor, first: int = 0, skipped: Tensor | None = None, columns: Tensor | None = None) -> Tensor:
        """`ModelError` where a training text has more columns than `position_range` has places."""
        count = first + x.shape[-2]
        own = compute_positions(first, x.shape[-2], skipped, x.device)
        if self.rng is None or self.rng.silent:
            chosen = (own + 1) * self.range // (self.longest.view(-1, 1, 1) + 1)
            return x + compute_sinusoids(chosen, self.width, x.dtype)
        needed = self.longest.new_full((), count) if columns is None else columns
        if count > self.range and int(needed.max()) > self.range:
            raise ModelError(
                f"randomised positions: a text of {int(needed.max())} tokens, "
                f"but the setting position_range = {self.range}: raise it"
            )
        self.longest.copy_(torch.maximum(self.longest, needed))
        order = draw_permutations(self.rng.fresh(), self.range)
        # Columns that only other replicas' rows have are put at the end of the range: nothing attends to them.
        is_used = torch.arange(self.range, device=x.device) < needed.view(-1, 1)
        drawn = F.pad(order.masked_fill(~is_used, self.range).sort(dim=1).values, (0, count), value=self.range)[
            :, :count
        ]
        chosen = drawn[:, None, own] if skipped is None else drawn.gather(1, own.flatten(1)).view(own.shape)
        return x + compute_sinusoids(chosen, self.width, x.dtype)
