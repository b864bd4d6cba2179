"""An affine map per replica."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_TINY = 400
"""Multiplications below which torch sums a batch of products in another order than a single one."""


class _Affine(torch.autograd.Function):
    """x (K, n, inputs), weight (K, outputs, inputs) and bias (K, outputs) or None to (K, n, outputs).

    The weight's gradient is computed in the weight's own layout. Autograd's would be transposed, and copying it for the
    optimiser takes a third of a step where batches are small. It can be differentiated again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        turned = weight.transpose(1, 2)
        return torch.bmm(x, turned) if bias is None else torch.baddbmm(bias.unsqueeze(1), x, turned)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        return (
            torch.bmm(gradient, weight) if needs_x else None,
            torch.bmm(gradient.transpose(1, 2), x) if needs_weight else None,
            gradient.sum(1) if needs_bias else None,
        )


class Linear(nn.Module):
    """(K, n, .., inputs) to (K, n, .., outputs). weight: (K, outputs, inputs); bias: (K, outputs) or None.

    Initial weights are uniform within 1 / sqrt(inputs), as torch.nn.Linear's."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__()
        reach = 1 / math.sqrt(inputs) if inputs else 0.0
        self.weight = nn.Parameter(torch.empty(1, outputs, inputs).uniform_(-reach, reach))
        self.bias = nn.Parameter(torch.empty(1, outputs).uniform_(-reach, reach)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        flat = x if x.ndim == 3 else x.flatten(1, -2)
        out = self._alone(flat) if self._is_alone(flat) else self._stacked(flat)
        return out if x.ndim == 3 else out.view(*x.shape[:-1], out.shape[-1])

    def _is_alone(self, flat: Tensor) -> bool:
        """Whether there is one replica, whose product is bitwise equal to its product within a batch."""
        replicas, outputs, inputs = self.weight.shape
        return replicas == 1 and flat.shape[1] * outputs * inputs >= _TINY

    def _alone(self, flat: Tensor) -> Tensor:
        """Apply torch's own autograd node, which costs less than one written in Python."""
        bias = None if self.bias is None else self.bias.squeeze(0)
        return F.linear(flat.squeeze(0), self.weight.squeeze(0), bias).unsqueeze(0)

    def _stacked(self, flat: Tensor) -> Tensor:
        tensors: list[Tensor | None] = [flat, self.weight, self.bias]
        if torch.is_autocast_enabled(flat.device.type):  # autocast does not reach into a custom autograd function
            lower = torch.get_autocast_dtype(flat.device.type)
            tensors = [None if x is None else x.to(lower) for x in tensors]
        return _Affine.apply(*tensors)  # type: ignore[no-untyped-call]
