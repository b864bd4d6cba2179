"""Networks: one file each, its name the recipe's `network`. A file holds `TASK`, `SETTINGS` (defaults), sometimes
`READS`, and `class Network`: a module of one replica, `Network(sizes, settings)`, from layers that have a replica axis.

The classes here are what most of them have in common."""

from typing import Any

import torch
from torch import Tensor, nn

from ..encoding.decoding import State, decode_greedily, select_likeliest


class RowNetwork(nn.Module):
    """A head on the features of rows."""

    width: int
    """Of the features."""
    head: Any

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Categories (K, n, fields) int64 and numbers (K, n, inputs) to a first representation (K, n, ..), which
        algorithms may change."""
        raise NotImplementedError

    def encode(self, x: Tensor) -> Tensor:
        """Output of `embed` to features (K, n, width)."""
        raise NotImplementedError

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Categories (K, n, fields) int64 and numbers (K, n, inputs) to outputs (K, n, outputs)."""
        return self.head(self.encode(self.embed(categories, numbers)))


class TextNetwork(nn.Module):
    """A head on the features of texts."""

    head: Any

    def features(self, source: Tensor, target: Tensor) -> Tensor:
        """Source ids (K, n, S) and the target ids to be taught (K, n, T) to inputs of the head, (K, n, T, width). A
        network that reads no token that it wrote ignores the target but for its width."""
        raise NotImplementedError

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Source ids (K, n, S) and the target ids to be taught (K, n, T) to logits (K, n, T, words)."""
        return self.head(self.features(source, target))


class Writer(TextNetwork):
    """A network that writes one token after the other."""

    aligned: bool
    """Whether an output is as long as its source."""

    def start(self, source: Tensor) -> State:
        """The state before the first token, from source ids (K, n, S)."""
        raise NotImplementedError

    def step(self, state: State, token: Tensor) -> tuple[Tensor, State]:
        """Logits (K, n, words) after `token` (K, n), and the state after it."""
        raise NotImplementedError

    def generate(self, source: Tensor, limit: int) -> Tensor:
        """The greedy output for source ids (K, n, S): ids (K, n, T), T <= limit (or S in an aligned task)."""
        return decode_greedily(self, source, limit, self.aligned)


class Transducer(TextNetwork):
    """A network with one output for each token of the source; targets are ignored."""

    @torch.no_grad()
    def generate(self, source: Tensor, limit: int) -> Tensor:
        """The likeliest word for each token of the source's, ids (K, n, S); PAD where the source has PAD."""
        return select_likeliest(self(source, source), source)
