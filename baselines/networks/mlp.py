"""A multi-layer perceptron with ReLU on one-hot categories and numbers.

Rumelhart, Hinton and Williams, Nature 1986; initial weights as He et al., ICCV 2015 (arXiv:1502.01852).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..encoding import Sizes

TASK = "classification"
SETTINGS: dict[str, Any] = {"width": 128, "depth": 1, "dropout": 0.0}
"""width and depth of the hidden layers."""


class Network(nn.Module):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.sizes = sizes
        widths = [sum(sizes.categories) + sizes.numbers] + [settings["width"]] * settings["depth"]
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.out = nn.Linear(widths[-1], sizes.outputs)
        self.dropout = nn.Dropout(settings["dropout"])
        for layer in self.hidden:
            assert isinstance(layer, nn.Linear)
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Categories (n, fields) int64 and numbers (n, width) to logits (n, classes)."""
        hot = [F.one_hot(ids, size) for size, ids in zip(self.sizes.categories, categories.T, strict=True)]
        x = torch.cat([*(part.to(numbers.dtype) for part in hot), numbers], dim=1)
        for layer in self.hidden:
            x = self.dropout(torch.relu(layer(x)))
        logits: Tensor = self.out(x)
        return logits
