"""A decoder-only Transformer: a language model over the source, a separator and the target, trained on the target only.

Radford et al. 2018 (GPT); as a sequence-to-sequence model, Wang et al., ICML 2022 (arXiv:2204.05832), "causal decoder".
BOS, which the target begins with, is the separator. Sources are right-aligned, so that a row's tokens are contiguous;
padding before them is masked and not counted, and a row does not depend on it.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..encoding.decoding import State, shift_right
from ..encoding.encoding import PAD, Sizes
from ..layers.attention import Stack, pack_keys_values, unpack_keys_values
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from ..training.sampler import count_columns
from . import Writer

TASK = "sequence"
SETTINGS: dict[str, Any] = {
    "width": 64,
    "heads": 4,
    "layers": 4,
    "feedforward": 256,
    "dropout": 0.0,
    "position": "sinusoidal",
    "position_range": 2048,
    "shared": False,
}
"""position: a file of positions/. position_range: the number of places, of source and target together, that `learned`
has vectors for, or that `randomised` draws from. shared: all layers have the same weights."""


def flush_right(ids: Tensor) -> Tensor:
    """Ids (.., S) padded at the end, with their padding moved to the front."""
    count = (ids != PAD).sum(dim=-1, keepdim=True)
    columns = torch.arange(ids.shape[-1], device=ids.device)
    return ids.gather(-1, (columns + count) % ids.shape[-1])


class Network(Writer):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.width, self.aligned = settings["width"], sizes.aligned
        self.read = Embedding(sizes.source, self.width)
        self.wrote = Embedding(sizes.outputs, self.width)
        for table in (self.read, self.wrote):
            nn.init.normal_(table.weight, std=self.width**-0.5)
        self.stack = Stack(settings, causal=True)
        self.head = Linear(self.width, sizes.outputs)

    def _run(self, x: Tensor, seen: Tensor, state: State, own: Tensor | None = None) -> tuple[Tensor, State]:
        """Features (K, n, T, width) of embedded tokens x, and the state after the last. seen: which columns, those of
        the state first, are not padding, (K, n, S). own: how many columns each replica's rows have, (K,)."""
        past, skipped = unpack_keys_values(state, "own"), (~seen).sum(dim=-1)
        x, keys_values = self.stack(x * math.sqrt(self.width), seen, past, skipped, columns=own)
        return x, {"seen": seen} | pack_keys_values(keys_values, "own", len(x))

    def start(self, source: Tensor) -> State:
        """The state before the first token, from source ids (K, n, S)."""
        source = flush_right(source)
        return self._run(self.read(source), source != PAD, {})[1]

    def step(self, state: State, token: Tensor) -> tuple[Tensor, State]:
        """Logits (K, n, words) after `token` (K, n), and the state after it."""
        token = token[..., None]
        seen = torch.cat([state["seen"], torch.ones_like(token, dtype=torch.bool)], dim=-1)
        features, state = self._run(self.wrote(token), seen, state)
        return self.head(features)[..., 0, :], state

    def features(self, source: Tensor, target: Tensor) -> Tensor:
        """What the head reads, (K, n, T, width), when `target` (K, n, T) is taught for source ids (K, n, S)."""
        source, tokens = flush_right(source), shift_right(target)
        seen = torch.cat([source != PAD, torch.ones_like(tokens, dtype=torch.bool)], dim=-1)
        x = torch.cat([self.read(source), self.wrote(tokens)], dim=-2)
        own = count_columns(source) + count_columns(target)
        return self._run(x, seen, {}, own)[0][..., source.shape[-1] :, :]
