"""A two-layer network without biases with the square as activation, known from grokking of modular addition.

Doshi, Das, He and Gromov, "To grok or not to grok", ICLR 2024 (arXiv:2310.13061), section 2: the one-hot inputs,
concatenated, to N = 500 squared units to the classes; every weight drawn from N(0, (0.5 / (2 N)^(1/3))^2).
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..encoding.encoding import Sizes
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from . import RowNetwork

TASK = "classification"
SETTINGS: dict[str, Any] = {"width": 500}
"""width: N, the number of hidden units."""


class Network(RowNetwork):
    starts: Tensor

    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        if sizes.numbers or not sizes.categories:
            raise ModelError("the quadratic network reads categories only: integer columns, inputs = 'categories'")
        self.width = settings["width"]
        self.into = Embedding(sum(sizes.categories), self.width)
        self.head = Linear(self.width, sizes.outputs, bias=False)
        deviation = 0.5 / (2 * self.width) ** (1 / 3)
        for layer in (self.into, self.head):
            nn.init.normal_(layer.weight, std=deviation)
        starts = [0, *accumulate(sizes.categories)][:-1]
        self.register_buffer("starts", torch.tensor(starts), persistent=False)

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Categories (K, n, fields) int64 to the hidden units before squaring, (K, n, width); `numbers` is empty.

        A one-hot row times a matrix is a row of the matrix, so the first layer is a sum of looked-up rows.
        """
        looked_up: Tensor = self.into(categories + self.starts)
        return looked_up.sum(dim=2)

    def encode(self, x: Tensor) -> Tensor:
        return x.square()
