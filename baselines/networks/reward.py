"""A reward model of pairs: one score for each of two replies to a prompt, by the same network.

The outputs are the scores r(x, a) and r(x, b), so that their softmax is the Bradley-Terry probability that b is chosen,
sigma(r(x, b) - r(x, a)), and cross-entropy the usual loss of reward models (Bradley and Terry, Biometrika 1952; Wang et
al. 2024, arXiv:2401.06080). Swapping the replies swaps the outputs.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..encoding.encoding import Sizes
from ..layers.linear import Linear
from . import mlp

TASK = "classification"
SETTINGS: dict[str, Any] = {"width": 128, "depth": 1, "dropout": 0.0}
"""width, depth and dropout of the multi-layer perceptron that scores a prompt with a reply."""


class Network(mlp.Network):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        """`ModelError` unless the inputs are three vectors of equal size and the outputs two."""
        self.part, rest = divmod(sizes.numbers, 3)
        if rest or not self.part or sizes.categories or sizes.outputs != 2:
            raise ModelError("the reward network reads a prompt and two replies, three texts or vectors of one size")
        super().__init__(replace(sizes, numbers=2 * self.part, outputs=1), settings)
        self.sizes = sizes
        self.head = _Scores(self.width)
        self.width *= 2

    def encode(self, x: Tensor) -> Tensor:
        """The prompt and both replies (K, n, 3 part) to the features of both, (K, n, 2 width)."""
        prompt, first, second = torch.split(x, self.part, dim=-1)
        each = [super(Network, self).encode(torch.cat([prompt, reply], dim=-1)) for reply in (first, second)]
        return torch.cat(each, dim=-1)


class _Scores(nn.Module):
    """Features of both replies (K, n, 2 width) to their scores (K, n, 2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        # A bias would cancel in the softmax of both scores: its gradient is 0.
        self.score = Linear(width, 1, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        return torch.cat([self.score(half) for half in features.chunk(2, dim=-1)], dim=-1)
