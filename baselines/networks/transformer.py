"""A Transformer encoder-decoder with sinusoidal positions; decoding keeps the keys and values it has computed.

Vaswani et al., NeurIPS 2017 (arXiv:1706.03762), with normalisation before each block (Xiong et al., ICML 2020,
arXiv:2002.04745). Keys and queries start with the same weights, so that at first like attends to like and, positions
being sinusoids, a token to its own place (as the mimetic initial weights of Trockman and Kolter, ICML 2023,
arXiv:2305.09828): a small budget then suffices to find an alignment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..decoding import State, greedy, shifted
from ..encoding import PAD, Sizes

TASK = "sequence"
SETTINGS: dict[str, Any] = {"width": 64, "heads": 4, "layers": 2, "feedforward": 256, "dropout": 0.0}
"""layers: of the encoder and of the decoder each."""


def sinusoids(first: int, count: int, width: int, device: torch.device) -> Tensor:
    """The encodings of positions first .. first + count - 1, (count, width): sines, then cosines."""
    places = torch.arange(first, first + count, dtype=torch.float32, device=device)
    pace = torch.exp(torch.arange(0, width, 2, device=device) * (-math.log(10_000.0) / width))
    angles = places[:, None] * pace
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :width]


class Attention(nn.Module):
    """Multi-head attention whose keys and values may be computed once and kept."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.pair = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        nn.init.normal_(self.query.weight, std=width**-0.5)
        with torch.no_grad():
            self.pair.weight[:width] = self.query.weight  # at first, like attends to like

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of x (n, T, width), each (n, heads, T, width / heads)."""
        keys, values = self.pair(x).view(*x.shape[:2], 2 * self.heads, -1).transpose(1, 2).chunk(2, dim=1)
        return keys, values

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
        """x (n, T, width) attends; `mask` (n, 1, 1, S) is true where it may."""
        queries = self.query(x).view(*x.shape[:2], self.heads, -1).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=causal)
        found: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return found


class Layer(nn.Module):
    """Self-attention, attention to a memory where there is one, and a feed-forward block."""

    def __init__(self, settings: Mapping[str, Any], reads_memory: bool) -> None:
        super().__init__()
        width, heads = settings["width"], settings["heads"]
        self.own, self.own_norm = Attention(width, heads), nn.LayerNorm(width)
        if reads_memory:
            self.cross, self.cross_norm = Attention(width, heads), nn.LayerNorm(width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, settings["feedforward"]), nn.ReLU(), nn.Linear(settings["feedforward"], width)
        )
        self.dropout = nn.Dropout(settings["dropout"])


class Network(nn.Module):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.width, self.aligned = settings["width"], sizes.aligned
        self.read = nn.Embedding(sizes.source, self.width)
        self.wrote = nn.Embedding(sizes.outputs, self.width)
        for table in (self.read, self.wrote):
            nn.init.normal_(table.weight, std=self.width**-0.5)
        self.encoder = nn.ModuleList(Layer(settings, reads_memory=False) for _ in range(settings["layers"]))
        self.decoder = nn.ModuleList(Layer(settings, reads_memory=True) for _ in range(settings["layers"]))
        self.read_norm, self.wrote_norm = nn.LayerNorm(self.width), nn.LayerNorm(self.width)
        self.out = nn.Linear(self.width, sizes.outputs)
        self.dropout = nn.Dropout(settings["dropout"])

    def _embedded(self, table: nn.Embedding, ids: Tensor, first: int = 0) -> Tensor:
        x = table(ids) * math.sqrt(self.width)
        embedded: Tensor = self.dropout(x + sinusoids(first, ids.shape[1], self.width, ids.device))
        return embedded

    def start(self, source: Tensor) -> State:
        """The state before the first token, from source ids (n, S): what cross-attention reads, and no past."""
        seen = (source != PAD)[:, None, None, :]
        x = self._embedded(self.read, source)
        for layer in cast(list[Layer], self.encoder):
            y = layer.own_norm(x)
            x = x + layer.dropout(layer.own(y, *layer.own.keys_values(y), seen))
            x = x + layer.dropout(layer.feed(layer.feed_norm(x)))
        memory = self.read_norm(x)
        state = {"seen": seen}
        for i, layer in enumerate(cast(list[Layer], self.decoder)):
            state[f"cross_keys_{i}"], state[f"cross_values_{i}"] = layer.cross.keys_values(memory)
        return state

    def _decode(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        """Logits (n, T, words) after each of `tokens` (n, T), and the state after the last. T = 1 once there
        is a past."""
        past = state["keys_0"].shape[2] if "keys_0" in state else 0
        x, state = self._embedded(self.wrote, tokens, past), dict(state)
        for i, layer in enumerate(cast(list[Layer], self.decoder)):
            y = layer.own_norm(x)
            keys, values = layer.own.keys_values(y)
            if past:
                keys = torch.cat([state[f"keys_{i}"], keys], dim=2)
                values = torch.cat([state[f"values_{i}"], values], dim=2)
            state[f"keys_{i}"], state[f"values_{i}"] = keys, values
            x = x + layer.dropout(layer.own(y, keys, values, None, causal=tokens.shape[1] > 1))
            y = layer.cross_norm(x)
            x = x + layer.dropout(layer.cross(y, state[f"cross_keys_{i}"], state[f"cross_values_{i}"], state["seen"]))
            x = x + layer.dropout(layer.feed(layer.feed_norm(x)))
        logits: Tensor = self.out(self.wrote_norm(x))
        return logits, state

    def step(self, state: State, token: Tensor) -> tuple[Tensor, State]:
        """Logits (n, words) after `token` (n,), and the state after it."""
        logits, state = self._decode(state, token[:, None])
        return logits[:, 0], state

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Source ids (n, S) and the target ids to be taught (n, T) to logits (n, T, words)."""
        return self._decode(self.start(source), shifted(target))[0]

    def generate(self, source: Tensor, limit: int) -> Tensor:
        """The greedy output for source ids (n, S): ids (n, T), T <= limit (or S in an aligned task)."""
        return greedy(self, source, limit, self.aligned)
