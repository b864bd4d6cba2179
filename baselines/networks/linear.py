"""Softmax regression: a linear classifier over one-hot categories and numbers.

Cox, "The regression analysis of binary sequences", JRSS B 1958; its weights are 0 at first, as the loss is convex.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ..encoding.encoding import Sizes
from ..layers.linear import Linear
from . import RowNetwork
from .mlp import encode_dense

TASK = "classification"
SETTINGS: dict[str, Any] = {}
"""It has no settings."""


class Network(RowNetwork):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.sizes = sizes
        self.width = sum(sizes.categories) + sizes.numbers
        self.head = Linear(self.width, sizes.outputs)
        assert self.head.bias is not None
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Categories (K, n, fields) int64 and numbers (K, n, width) to one vector a row, (K, n, inputs)."""
        return encode_dense(self.sizes.categories, categories, numbers)

    def encode(self, x: Tensor) -> Tensor:
        """The inputs themselves, (K, n, width)."""
        return x
