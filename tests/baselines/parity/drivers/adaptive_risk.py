"""Adaptive risk minimisation (Zhang et al., NeurIPS 2021): three steps of `ARM_CML` on pictures of one pixel."""

from typing import Any

import torch
from torch import Tensor, nn

from .. import toy
from ..make import Made
from ..plain import network, on_cpu
from ..reference import Numbers

REPOSITORY = "henrikmarklund/arm"
COMMIT = "e4a0ce2d22fb0a8e98e9588420a04e707a418e9e"
WIDTH = 3


class Added(nn.Module):
    """The toy's perceptron on the sum of a row and its context, which it joins as further channels."""

    def __init__(self) -> None:
        super().__init__()
        self.network = network()

    def forward(self, x: Tensor) -> Tensor:
        row, context = x.flatten(1).chunk(2, dim=1)
        logits: Tensor = self.network(row + context)
        return logits


class Context(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(toy.INPUTS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, toy.INPUTS)).double()
        toy.fill(self.parameters(), 4)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layers(x.flatten(1))
        return result.view_as(x)


def adapted() -> Numbers:
    with on_cpu(higher={}, torchvision={"models": None}):
        from algorithm.algorithm import ARM_CML

        hparams: dict[str, Any] = {"optimizer": "sgd", "learning_rate": toy.RATE, "weight_decay": 0.0}
        hparams |= {"support_size": toy.ROWS, "n_context_channels": toy.INPUTS, "adapt_bn": 0}
        built = ARM_CML(Added(), nn.CrossEntropyLoss(), torch.device("cpu"), Context(), hparams)
        x = toy.inputs()[:, :, None, None]
        losses, parameters = [], []
        for _ in range(toy.STEPS):
            losses.append(built.learn(x, toy.labels())[1]["objective"])
            parameters.append(toy.flat([*built.model.parameters(), *built.context_net.parameters()]))
    return {"losses": losses, "parameters": parameters}


MADE = {
    "arm": Made(
        adapted,
        "algorithm/algorithm.py: ARM_CML",
        {"context_width": WIDTH},
        remark="its network adds the context, which it is given as further channels, to the row, as ours does",
    )
}
