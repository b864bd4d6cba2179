"""The toy's pictures: eighteen of them, in three batches to be asked one after the other, and a residual network with
batch normalisation: the house's `resnet`, whose parameters and moments are filled by a formula, and a plain one for
released code."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from farshift.baselines.encoding.encoding import Sizes
from torch import Tensor, nn

from . import toy

SIDE = 6
WIDTHS = [2, 3]
SIZES = Sizes(toy.CLASSES, numbers=SIDE**2, shape=(SIDE, SIDE))


def batches() -> list[Tensor]:
    """Three batches of pictures (6, 1, SIDE, SIDE), from 0 to 1, each batch brighter than the one before."""
    shown = 0.35 + 0.35 * toy.wave((toy.ENVIRONMENTS * toy.ROWS, 1, SIDE, SIDE), 0.4)
    return list((shown + 0.1 * toy.groups().double().view(-1, 1, 1, 1)).split(toy.ROWS))


@torch.no_grad()
def fill(network: nn.Module, sharpness: float = 1.0) -> None:
    """Parameters as the toy's; moments near 0 and 1. sharpness: multiplies what the last layer says."""
    toy.fill(network.parameters())
    moments = [(name, buffer) for name, buffer in network.named_buffers() if "running" in name]
    for position, (name, buffer) in enumerate(moments):
        around = 1.0 if name.endswith("var") else 0.0
        buffer.copy_((around + 0.4 * toy.wave((buffer.numel(),), float(position))).view_as(buffer))
    for parameter in network.head.parameters():  # type: ignore[union-attr]
        parameter *= sharpness


def plain(sharpness: float = 1.0) -> Plain:
    """The network for released code, in float64 and in evaluation."""
    result = Plain().double().eval()
    fill(result, sharpness)
    return result


class Normalised(nn.Module):
    def __init__(self, inputs: int, outputs: int, pooled: bool) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.pooled = pooled

    def forward(self, x: Tensor) -> Tensor:
        y = self.convolution(x)
        y = F.max_pool2d(y, 2, ceil_mode=True) if self.pooled else y
        return F.gelu(self.norm(y))


class Group(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.into = Normalised(inputs, outputs, True)
        self.block = nn.Sequential(*(Normalised(outputs, outputs, False) for _ in range(2)))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.into(x)
        added: Tensor = y + self.block(y)
        return added


class Plain(nn.Module):
    """Pictures (n, 1, SIDE, SIDE) to logits (n, classes)."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(Normalised(1, WIDTHS[0], False), Group(*WIDTHS))
        self.head = nn.Linear(WIDTHS[-1], toy.CLASSES)

    def encode(self, x: Tensor) -> Tensor:
        features: Tensor = self.body(x).flatten(2).mean(2)
        return features

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.encode(x))
        return logits


def recorded(model: Any, network: nn.Module, ask: Any) -> dict[str, Any]:
    """What `ask(model, batch)` answers to each batch, as log-probabilities, and all weights after it."""
    answers, parameters = [], []
    for batch in batches():
        answers.append(toy.flat([ask(model, batch).log_softmax(-1)]))
        parameters.append(toy.flat(network.parameters()))
    return {"answers": answers, "parameters": parameters}
