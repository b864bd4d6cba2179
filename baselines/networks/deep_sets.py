"""Deep sets: each element is embedded by itself, the embeddings are summed, and the sum is classified.

Zaheer et al., "Deep sets", NeurIPS 2017 (arXiv:1703.06114), theorem 2: rho(sum of phi(x) over the elements x), which no
order of the elements changes.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..encoding.encoding import Sizes
from ..layers.dropout import Dropout
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from . import RowNetwork

TASK = "classification"
SETTINGS: dict[str, Any] = {"width": 128, "depth": 2, "dropout": 0.0}
"""width: of an embedded category and of all hidden layers. depth: hidden layers of phi, and of rho. dropout: after each
of rho's."""


class Network(RowNetwork):
    """The elements are the categories, whose ids mean the same in every field; or the rows of a numeric array of two or
    more axes; or, of one axis, its numbers. `ModelError` for both, which do not form a set."""

    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        if bool(sizes.categories) == bool(sizes.numbers):
            raise ModelError("deep_sets reads a set: categories alone or numbers alone (set inputs to one of them)")
        self.width, depth = settings["width"], settings["depth"]
        if depth < 1:
            raise ModelError(f"setting depth = {depth}: use 1 hidden layer or more on either side of the sum")
        self.elements = sizes.shape[0] if sizes.shape else sizes.numbers
        self.table = Embedding(max(sizes.categories), self.width) if sizes.categories else None
        first = self.width if sizes.categories else sizes.numbers // self.elements
        self.phi = _make_hidden_layers([first] + [self.width] * depth)
        self.rho = _make_hidden_layers([self.width] * (depth + 1))
        self.head = Linear(self.width, sizes.outputs)
        self.dropout = Dropout(settings["dropout"])

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Categories (K, n, fields) int64, or numbers (K, n, width), to elements (K, n, elements, features)."""
        if self.table is None:
            return numbers.reshape(*numbers.shape[:-1], self.elements, numbers.shape[-1] // self.elements)
        return self.table(categories)

    def encode(self, x: Tensor) -> Tensor:
        for layer in self.phi:
            x = torch.relu(layer(x))
        x = x.sum(dim=2)
        for layer in self.rho:
            x = self.dropout(torch.relu(layer(x)))
        return x


def _make_hidden_layers(widths: list[int]) -> nn.ModuleList:
    """Layers between these widths, initial weights as He et al., ICCV 2015 (arXiv:1502.01852)."""
    layers = nn.ModuleList()
    for before, after in pairwise(widths):
        layer = Linear(before, after)
        assert layer.bias is not None
        nn.init.kaiming_normal_(layer.weight[0], nonlinearity="relu")
        nn.init.zeros_(layer.bias)
        layers.append(layer)
    return layers
