"""Two networks of one recipe that are trained side by side, with different initial weights."""

from typing import Any

from torch import Tensor, nn

from . import Build


class Pair(nn.Module):
    """Two networks, `first` and `second`; its features and logits are those of the first."""

    def __init__(self, first: Any, second: Any) -> None:
        super().__init__()
        self.first, self.second = first, second

    @property
    def width(self) -> int:
        return int(self.first.width)

    @property
    def head(self) -> nn.Module:
        return self.first.head

    def embed(self, *inputs: Tensor) -> Tensor:
        return self.first.embed(*inputs)

    def encode(self, x: Tensor) -> Tensor:
        return self.first.encode(x)

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.first(*inputs)


def build_pair(build: Build) -> Pair:
    """Two of the recipe's networks."""
    return Pair(build("weights"), build("weights of the second"))


def compute_joint_logits(network: Pair, *inputs: Tensor) -> Tensor:
    """The mean of both networks' logits, (K, n, classes)."""
    return (network.first(*inputs) + network.second(*inputs)) / 2
