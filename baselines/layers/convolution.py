"""Two-dimensional convolution and pooling per replica."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def apply_per_replica(function: Callable[..., Tensor], *tensors: Tensor | None) -> Tensor:
    """`function` of each replica's part of the tensors (K, ..), stacked again; None is None for every replica.

    On a CPU, convolutions of K replicas take as long in K calls as in one with K groups, and give in every bit what a
    replica alone would get."""
    replicas = next(len(tensor) for tensor in tensors if tensor is not None)
    columns = [[None] * replicas if tensor is None else tensor.unbind() for tensor in tensors]
    results = [function(*parts) for parts in zip(*columns, strict=True)]
    return torch.stack(results) if replicas > 1 else results[0][None]


class Conv2d(nn.Module):
    """Images (K, n, inputs, H, W) to (K, n, outputs, H', W'), with kernel // 2 zeros on every side: of one
    size, where the kernel is odd and the stride 1.

    weight: (K, outputs, inputs, kernel, kernel); bias: (K, outputs) or None. Initial weights are uniform within
    1 / sqrt(inputs kernel^2), as torch.nn.Conv2d's."""

    def __init__(self, inputs: int, outputs: int, kernel: int, bias: bool = True, stride: int = 1) -> None:
        super().__init__()
        self.stride, self.padding = stride, kernel // 2
        reach = 1 / math.sqrt(inputs * kernel**2)
        self.weight = nn.Parameter(torch.empty(1, outputs, inputs, kernel, kernel).uniform_(-reach, reach))
        self.bias = nn.Parameter(torch.empty(1, outputs).uniform_(-reach, reach)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type == "cpu":
            return apply_per_replica(self._convolved, x, self.weight, self.bias)
        return self._grouped(x)

    def _convolved(self, x: Tensor, weight: Tensor, bias: Tensor | None, groups: int = 1) -> Tensor:
        return F.conv2d(x, weight, bias, self.stride, self.padding, groups=groups)

    def _grouped(self, x: Tensor) -> Tensor:
        """One call in which each replica is a group of channels: one launch on a GPU, whatever K is."""
        replicas, outputs = self.weight.shape[:2]
        bias = None if self.bias is None else self.bias.flatten()
        wide = x.transpose(0, 1).flatten(1, 2)
        out = self._convolved(wide, self.weight.flatten(0, 1), bias, replicas)
        return out.view(len(out), replicas, outputs, *out.shape[2:]).transpose(0, 1)


def halve_by_max(x: Tensor) -> Tensor:
    """The maxima of 2 x 2 squares: (K, n, channels, H, W) to half the size, rounded up, so that no pixel is lost and an
    image of any size can be halved."""
    half = F.max_pool2d(x.flatten(0, 1), 2, ceil_mode=True)
    return half.view(*x.shape[:2], *half.shape[1:])
