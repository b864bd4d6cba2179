"""A multi-layer perceptron with ReLU over one-hot categories and numbers.

Rumelhart, Hinton and Williams, Nature 1986; initial weights as He et al., ICCV 2015 (arXiv:1502.01852).
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..encoding.encoding import Sizes
from ..layers.dropout import Dropout
from ..layers.linear import Linear
from . import RowNetwork

TASK = "classification"
SETTINGS: dict[str, Any] = {"width": 128, "depth": 1, "dropout": 0.0}
"""width and depth of the hidden layers."""


def encode_dense(values: tuple[int, ...], categories: Tensor, numbers: Tensor) -> Tensor:
    """One-hot categories (K, n, fields), field i with `values[i]` values, and numbers (K, n, width): (K, n, inputs)."""
    if not values:
        return numbers
    hot = [F.one_hot(categories[..., index], size).to(numbers.dtype) for index, size in enumerate(values)]
    return torch.cat([*hot, numbers], dim=-1)


class Network(RowNetwork):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.sizes = sizes
        self.width = settings["width"]
        widths = [sum(sizes.categories) + sizes.numbers] + [self.width] * settings["depth"]
        self.hidden = nn.ModuleList(Linear(a, b) for a, b in pairwise(widths))
        self.head = Linear(widths[-1], sizes.outputs)
        self.dropout = Dropout(settings["dropout"])
        for layer in self.hidden:
            assert isinstance(layer, Linear)
            assert layer.bias is not None
            nn.init.kaiming_normal_(layer.weight[0], nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Categories (K, n, fields) int64 and numbers (K, n, width) to one vector a row, (K, n, inputs)."""
        return encode_dense(self.sizes.categories, categories, numbers)

    def encode(self, x: Tensor) -> Tensor:
        for layer in self.hidden:
            x = self.dropout(torch.relu(layer(x)))
        return x
