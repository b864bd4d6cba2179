"""Two layers, no bias, the square as activation: the network in which grokking of modular addition is solvable.

Doshi, Das, He and Gromov, "To grok or not to grok", ICLR 2024 (arXiv:2310.13061), section 2: the one-hot inputs,
concatenated, to N = 500 squared units to the classes; every weight drawn from N(0, (0.5 / (2 N)^(1/3))^2).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...splits.errors import ModelError
from ..encoding import Sizes

TASK = "classification"
SETTINGS: dict[str, Any] = {"width": 500}
"""width: N, the number of hidden units."""


class Network(nn.Module):
    starts: Tensor

    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        if sizes.numbers or not sizes.categories:
            raise ModelError("the quadratic network reads categories only: integer columns, inputs = 'categories'")
        width = settings["width"]
        deviation = 0.5 / (2 * width) ** (1 / 3)
        self.into = nn.Parameter(torch.randn(sum(sizes.categories), width) * deviation)
        self.out = nn.Parameter(torch.randn(width, sizes.outputs) * deviation)
        starts = [0, *accumulate(sizes.categories)][:-1]
        self.register_buffer("starts", torch.tensor(starts), persistent=False)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Categories (n, fields) int64 to outputs (n, classes); `numbers` is empty.

        A one-hot row times a matrix is a row of the matrix, so the first layer is a sum of looked-up rows.
        """
        looked_up = F.embedding_bag(categories + self.starts, self.into, mode="sum")
        return looked_up.square() @ self.out
