"""A Transformer encoder for in-context learning: pairs (x, y) as tokens, and a query whose y is predicted.

The question of Garg et al., "What Can Transformers Learn In-Context?" (NeurIPS 2022, arXiv:2208.01066). There a decoder
reads x and y as separate tokens and is trained to predict each y from the tokens before it; here a pair is one token,
every token attends to every other, and only the query's y is trained. Without positions the order of the pairs does not
change the output, and there may be more of them than in training. A y may be a class, as one-hot numbers (Kirsch et
al., "General-Purpose In-Context Learning by Meta-Learning Transformers", arXiv:2212.04458).
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..encoding.encoding import Sizes
from ..layers.attention import Stack
from ..layers.linear import Linear
from . import RowNetwork, _prompts

TASK = "classification"
SETTINGS: dict[str, Any] = {
    "width": 64,
    "heads": 4,
    "layers": 4,
    "feedforward": 256,
    "dropout": 0.0,
    "position": "none",
    "position_range": 2048,
    "shared": False,
}
"""position: a file of positions/; by default a set of pairs. position_range, shared: see `transformer`."""


class Network(RowNetwork):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.lines, inputs = _prompts.check_prompt(sizes, "prompt_transformer")
        self.width = settings["width"]
        self.read = Linear(inputs + 2, self.width)
        self.encoder = Stack(settings, causal=False)
        self.head = Linear(self.width, sizes.outputs)

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Flat prompts `numbers` (K, n, lines * (width + 2)) to lines (K, n, lines, width + 2); `categories` is
        empty."""
        return _prompts.split_lines(numbers, self.lines)

    def encode(self, x: Tensor) -> Tensor:
        """Output of `embed` to features of the query, (K, n, width)."""
        seen = x[..., -1] != 0
        query = torch.zeros_like(seen)
        query[..., -1] = True
        features, _ = self.encoder(self.read(x), seen | query)
        return features[..., -1, :]
