"""Filters over the patches of a row with squared ReLU, whose outputs are added up for a class or against it.

A two-layer convolutional network as in the theory of features and noise: f(x) is the mean over filters r of sum_p
s(w_{+,r} . x_p) - s(w_{-,r} . x_p), s(z) = max(0, z)^2, without biases, and its second layer is not trained. Cao et al.
(NeurIPS 2022, arXiv:2202.06526) have powers above 2 for s; of Lu et al. (ICLR 2024, arXiv:2310.17074) only the abstract
was read. The outputs are (1 - f) / 2 and (1 + f) / 2, so that the squared loss on one-hot labels is (f - y)^2 / 4 for y
= -1 or 1.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..encoding.encoding import Sizes
from ..layers.linear import Linear

TASK = "classification"
SETTINGS: dict[str, Any] = {"width": 8, "deviation": 0.05}
"""width: the filters of each class. deviation: the standard deviation of initial weights."""


class Network(nn.Module):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        if sizes.outputs != 2 or sizes.categories or len(sizes.shape) != 2:
            raise ModelError("patch_network tells two classes apart, by one numeric input [patches, numbers]")
        self.patches, length = sizes.shape
        self.width = 2 * settings["width"]
        self.filters = Linear(length, self.width, bias=False)
        nn.init.normal_(self.filters.weight, std=settings["deviation"])

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Numbers (K, n, patches x length) as they are; `categories` is empty."""
        return numbers

    def encode(self, x: Tensor) -> Tensor:
        """Output of `embed` to the sums over patches, (K, n, 2 x filters)."""
        patches = x.reshape(x.shape[0], x.shape[1] * self.patches, -1)
        filtered = torch.relu(self.filters(patches)).square()
        return filtered.view(*x.shape[:2], self.patches, self.width).sum(dim=2)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Numbers (K, n, patches x length) to outputs (K, n, 2)."""
        features = self.encode(self.embed(categories, numbers))
        against, towards = (half.mean(-1) for half in features.chunk(2, dim=-1))
        f = towards - against
        return torch.stack([(1 - f) / 2, (1 + f) / 2], dim=-1)
