"""Low-rank adaptation of a linear layer (LoRA): W x + (alpha / r) B A x, W frozen, B 0 at first.

Hu et al., ICLR 2022 (arXiv:2106.09685), equation 3 and section 4.1. The layer is one of a model that is called for one
replica at a time (`networks/_body.py`): its parameters have the replica axis, what it computes has none.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Lora(nn.Module):
    """weight (K, outputs, inputs) and bias (K, outputs) of the layer that it replaces, frozen; down (K, r, inputs)
    and up (K, outputs, r), which are trained; scale (K,): alpha / r. Where the layer is GPT-2's kind of linear layer
    (`Conv1D` of transformers), weight is (K, inputs, outputs)."""

    scale: Tensor

    def __init__(self, layer: Any, rank: int, alpha: float) -> None:
        """layer: of one replica, its parameters with the replica axis. down is drawn as He et al. draw for a leak of
        sqrt(5), as the authors' code does."""
        super().__init__()
        self.weight: nn.Parameter = layer.weight
        self.bias: nn.Parameter | None = layer.bias
        self.turned = not isinstance(layer, nn.Linear)
        inputs, outputs = layer.weight.shape[1:] if self.turned else layer.weight.shape[:0:-1]
        self.down = nn.Parameter(torch.empty(1, rank, inputs))
        nn.init.kaiming_uniform_(self.down[0], a=5**0.5)
        self.up = nn.Parameter(torch.zeros(1, outputs, rank))
        self.register_buffer("scale", torch.tensor([alpha / rank]))
        for parameter in (self.weight, self.bias):
            if parameter is not None:
                parameter.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        """x (.., inputs) to (.., outputs), while the parameters are one replica's."""
        change = F.linear(F.linear(x, self.down), self.up) * self.scale
        return F.linear(x, self.weight.mT if self.turned else self.weight, self.bias) + change


def add_lora(model: nn.Module, layers: list[str], rank: int, alpha: float) -> None:
    """Replace the layers of these names by their adaptations, and freeze everything else."""
    model.requires_grad_(False)
    for name in layers:
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, Lora(model.get_submodule(name), rank, alpha))
