"""Positional encodings: how self-attention learns the order of tokens; one file each, its name the setting
`position`.

A file holds `class Encoding(Position)` and its citation. An encoding may do any of three things: add to a stack's input
(`added`), turn queries and keys (`turned`), or add to the scores (`bias`). It applies to self-attention only:
cross-attention sees only what was added to the inputs.

Settings that an encoding may read: `width`, `heads` and `position_range` (the number of positions it
has, where that is limited).
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...core.plugins import load_module


class Position(nn.Module):
    """The positional encoding of one stack of self-attention; this base class changes nothing.

    `settings` are the network's. `causal`: whether later tokens are hidden. A token's column is its index in the batch;
    its place is its index among the tokens of its row, which differs where padding comes first.
    """

    def __init__(self, settings: Mapping[str, Any], causal: bool) -> None:
        super().__init__()

    def added(self, x: Tensor, first: int = 0, skipped: Tensor | None = None, columns: Tensor | None = None) -> Tensor:
        """The stack's input x (K, n, T, width), its columns from `first` on, with what marks their places.

        skipped: the columns of padding before the first token of each row, (K, n) int64; None for none. columns: how
        many columns each replica's own rows have, (K,) int64; None for all: a batch is padded to the longest row of
        any replica, and a replica's result must not depend on the other replicas."""
        return x

    def turned(self, x: Tensor, first: int = 0) -> Tensor:
        """Queries or keys x (K * n, heads, T, width / heads), a replica's rows after another's, of the columns from
        `first` on."""
        return x

    def bias(self, first: int, count: int) -> Tensor | None:
        """What is added to the scores of `count` queries from the column `first` on, over all keys up to the last
        query: (K or 1, heads, count, first + count), or None for nothing. Masks are applied elsewhere."""
        return None


def make_position(settings: Mapping[str, Any], causal: bool) -> Position:
    """A new encoding, as the setting `position` names it; `UnknownName` for an unknown name."""
    return load_module("baselines/positions", settings["position"], "position").Encoding(settings, causal)


def compute_positions(first: int, count: int, skipped: Tensor | None, device: torch.device) -> Tensor:
    """The places of `count` columns from `first` on: (count,) int64, or (K, n, count) where padding is skipped, whose
    own places are 0."""
    columns = torch.arange(first, first + count, device=device)
    return columns if skipped is None else (columns - skipped[..., None]).clamp(min=0)


def compute_distances(first: int, count: int, device: torch.device) -> Tensor:
    """Key's column less query's column, (count, first + count) int64, for `count` queries from `first` on."""
    columns = torch.arange(first + count, device=device)
    return columns - columns[first:, None]
