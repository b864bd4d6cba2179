"""Two-dimensional convolution per replica."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .per_replica import apply_per_replica


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
