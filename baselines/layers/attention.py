"""Multi-head attention, and stacks of Transformer blocks that cache keys and values.

Vaswani et al., NeurIPS 2017 (arXiv:1706.03762), with normalisation before each block (Xiong et al., ICML 2020,
arXiv:2002.04745). Keys and queries start with the same weights, so that at first similar tokens attend to each other
and, with sinusoidal positions, a token attends to its own position (as with the mimetic initial weights of Trockman and
Kolter, ICML 2023, arXiv:2305.09828): a small budget then suffices to find an alignment.
"""

from collections.abc import Mapping
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...core.errors import ModelError
from ..positions import make_position
from .dropout import Dropout
from .linear import Linear
from .norm import LayerNorm

Pair = tuple[Tensor, Tensor]
"""Keys and values, each (K * n, heads, S, width / heads): the rows of one replica after those of another."""


class Attention(nn.Module):
    """Multi-head attention whose keys and values may be computed once and reused."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ModelError(f"settings width = {width}, heads = {heads}: width must be a multiple of heads")
        self.width, self.heads = width, heads
        self.query = Linear(width, width)
        self.pair = Linear(width, 2 * width)
        self.out = Linear(width, width)
        nn.init.normal_(self.query.weight, std=width**-0.5)
        with torch.no_grad():
            self.pair.weight[:, :width] = self.query.weight  # at first, similar tokens attend to each other

    def queries(self, x: Tensor) -> Tensor:
        """Queries of x (K, n, T, width): (K * n, heads, T, width / heads)."""
        return self.query(x).view(-1, x.shape[2], self.heads, self.width // self.heads).transpose(1, 2)

    def keys_values(self, x: Tensor) -> Pair:
        """Keys and values of x (K, n, S, width)."""
        folded = self.pair(x).view(-1, x.shape[2], 2 * self.heads, self.width // self.heads)
        keys, values = folded.transpose(1, 2).chunk(2, dim=1)
        return keys, values

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool = False
    ) -> Tensor:
        """The attended values of each query, (K, n, T, width).

        mask, each axis of (K, n, heads, T, S) whole or 1: true where a query may attend, or a bias added to its score.
        causal: of as many queries as keys, each attends to those up to its own (without a mask)."""
        replicas = self.out.weight.shape[0]
        rows = queries.shape[0] // replicas
        if mask is not None:
            mask = mask.expand(replicas, rows, -1, -1, -1).flatten(0, 1)
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=causal)
        return self.out(mixed.transpose(1, 2).reshape(replicas, rows, queries.shape[2], self.width))


class Block(nn.Module):
    """Self-attention, attention to a memory where there is one, and a feed-forward network, each added to its input."""

    def __init__(self, settings: Mapping[str, Any], reads_memory: bool) -> None:
        super().__init__()
        width, heads = settings["width"], settings["heads"]
        self.own, self.own_norm = Attention(width, heads), LayerNorm(width)
        if reads_memory:
            self.cross, self.cross_norm = Attention(width, heads), LayerNorm(width)
        self.feed_norm = LayerNorm(width)
        self.feed = nn.Sequential(
            Linear(width, settings["feedforward"]), nn.ReLU(), Linear(settings["feedforward"], width)
        )


class Stack(nn.Module):
    """Blocks one after another, between positions and a last normalisation.

    settings: `width`, `heads`, `layers`, `feedforward`, `dropout`, `position` (with `position_range`), and
    `shared`: one block's weights serve all layers (the Universal Transformer of Dehghani et al., ICLR 2019,
    arXiv:1807.03819, without halting and without marks of depth, as Csordás et al., EMNLP 2021, arXiv:2108.12284).
    causal: later tokens are hidden. reads_memory: every block attends to a memory too.
    """

    def __init__(self, settings: Mapping[str, Any], causal: bool, reads_memory: bool = False) -> None:
        super().__init__()
        self.causal, self.depth = causal, settings["layers"]
        self.position = make_position(settings, causal)
        blocks = 1 if settings["shared"] else self.depth
        self.blocks = nn.ModuleList(Block(settings, reads_memory) for _ in range(blocks))
        self.norm = LayerNorm(settings["width"])
        self.dropout = Dropout(settings["dropout"])

    def memory(self, x: Tensor) -> list[Pair]:
        """The keys and values of x (K, n, S, width) for the blocks' cross-attention, in the order of the blocks."""
        return [block.cross.keys_values(x) for block in cast(list[Block], self.blocks)]

    def _mask(self, first: int, count: int, seen: Tensor | None, device: torch.device) -> Tensor | None:
        """The mask of `count` queries from the column `first` on, with the biases of their scores. None: no mask, or
        (causal, without a past) the plain causal mask, which attention builds itself."""
        bias = self.position.bias(first, count)
        may = None if seen is None else seen[:, :, None, None, :]
        plain = first == 0 and may is None and bias is None
        if self.causal and not plain and (count > 1 or may is not None):
            square = torch.ones(1, 1, 1, count, first + count, dtype=torch.bool, device=device)
            triangle = square.tril(first)
            # Padding before a row's first token attends to itself: a softmax over no keys is NaN.
            may = triangle if may is None else (may & triangle) | triangle.triu(first)
        if bias is None:
            return may
        return bias[:, None] if may is None else bias[:, None].masked_fill(~may, -torch.inf)

    def forward(
        self,
        x: Tensor,
        seen: Tensor | None = None,
        past: list[Pair] | None = None,
        skipped: Tensor | None = None,
        memory: list[Pair] | None = None,
        memory_seen: Tensor | None = None,
        columns: Tensor | None = None,
    ) -> tuple[Tensor, list[Pair]]:
        """Embedded tokens x (K, n, T, width) to features of the same shape, and every layer's keys and values so far.

        seen: which columns, the past's first, hold a token, (K, n, S) bool; None for all. past: keys and values of the
        previous call. skipped, columns: see `Position.added`. memory: the result of `Stack.memory`;
        memory_seen: as `seen`, for the memory."""
        first, count = past[0][0].shape[-2] if past else 0, x.shape[-2]
        mask = self._mask(first, count, seen, x.device)
        triangle = self.causal and count > 1 and mask is None
        readable = None if memory_seen is None else memory_seen[:, :, None, None, :]
        position, dropout = self.position, self.dropout
        x = dropout(position.added(x, first, skipped, columns))
        keys_values = []
        for depth in range(self.depth):
            block = cast(Block, self.blocks[depth % len(self.blocks)])
            own, y = block.own, block.own_norm(x)
            queries, (keys, values) = position.turned(own.queries(y), first), own.keys_values(y)
            keys = position.turned(keys, first)
            if past:
                keys = torch.cat([past[depth][0], keys], dim=-2)
                values = torch.cat([past[depth][1], values], dim=-2)
            keys_values.append((keys, values))
            x = x + dropout(own(queries, keys, values, mask, triangle))
            if memory:
                queries = block.cross.queries(block.cross_norm(x))
                x = x + dropout(block.cross(queries, *memory[depth % len(memory)], readable))
            x = x + dropout(block.feed(block.feed_norm(x)))
        return self.norm(x), keys_values


def pack_keys_values(pairs: list[Pair], name: str, replicas: int) -> dict[str, Tensor]:
    """Keys and values as entries (K, n, heads, S, width / heads) of a decoder's state, under `name`."""
    return {
        f"{name}_{part}_{i}": x.view(replicas, -1, *x.shape[1:])
        for i, pair in enumerate(pairs)
        for part, x in zip("kv", pair, strict=True)
    }


def unpack_keys_values(state: Mapping[str, Tensor], name: str) -> list[Pair]:
    """The pairs that `pack_keys_values` stored in a state under `name`; an empty list if there are none."""
    count = sum(key.startswith(f"{name}_k_") for key in state)
    return [(state[f"{name}_k_{i}"].flatten(0, 1), state[f"{name}_v_{i}"].flatten(0, 1)) for i in range(count)]
