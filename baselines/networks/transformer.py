"""A Transformer encoder-decoder; decoding caches keys and values.

Vaswani et al., NeurIPS 2017 (arXiv:1706.03762), with normalisation before each block and queries that start like their
keys (layers/attention.py).
"""

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ..encoding.decoding import State, shift_right
from ..encoding.encoding import PAD, Sizes
from ..layers.attention import Pair, Stack, pack_keys_values, unpack_keys_values
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from ..training.sampler import count_columns
from . import Writer

TASK = "sequence"
SETTINGS: dict[str, Any] = {
    "width": 64,
    "heads": 4,
    "layers": 2,
    "feedforward": 256,
    "dropout": 0.0,
    "position": "sinusoidal",
    "position_range": 2048,
    "shared": False,
}
"""layers: of the encoder and of the decoder each. position: a file of positions/. position_range: the number of places
that `learned` has vectors for, or that `randomised` draws from. shared: all layers of a stack have the same weights."""


class Network(Writer):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.width, self.aligned = settings["width"], sizes.aligned
        self.read = Embedding(sizes.source, self.width)
        self.wrote = Embedding(sizes.outputs, self.width)
        for table in (self.read, self.wrote):
            nn.init.normal_(table.weight, std=self.width**-0.5)
        self.encoder = Stack(settings, causal=False)
        self.decoder = Stack(settings, causal=True, reads_memory=True)
        self.head = Linear(self.width, sizes.outputs)

    def _read(self, source: Tensor) -> tuple[Tensor, list[Pair]]:
        """Which columns of source ids (K, n, S) are tokens, and their keys and values for the decoder's blocks."""
        seen = source != PAD
        seen[..., 0] = True  # an empty text is read as one word of padding: attention over no keys is NaN
        memory, _ = self.encoder(
            self.read(source) * math.sqrt(self.width), seen, columns=count_columns(source).clamp(min=1)
        )
        return seen, self.decoder.memory(memory)

    def start(self, source: Tensor) -> State:
        """The state before the first token, from source ids (K, n, S): cross-attention's keys and values, no past."""
        seen, memory = self._read(source)
        return {"seen": seen} | pack_keys_values(memory, "cross", len(source))

    def step(self, state: State, token: Tensor) -> tuple[Tensor, State]:
        """Logits (K, n, words) after `token` (K, n), and the state after it."""
        x, keys_values = self.decoder(
            self.wrote(token[..., None]) * math.sqrt(self.width),
            past=unpack_keys_values(state, "own"),
            memory=unpack_keys_values(state, "cross"),
            memory_seen=state["seen"],
        )
        return self.head(x)[..., 0, :], state | pack_keys_values(keys_values, "own", len(token))

    def features(self, source: Tensor, target: Tensor) -> Tensor:
        """What the head reads, (K, n, T, width), when `target` (K, n, T) is taught for source ids (K, n, S)."""
        seen, memory = self._read(source)
        x = self.wrote(shift_right(target)) * math.sqrt(self.width)
        return self.decoder(x, memory=memory, memory_seen=seen, columns=count_columns(target))[0]
