"""Stochastic gradient descent with momentum. Sutskever et al., ICML 2013; weight decay is added to the gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..replicas.hyperparameters import Hyperparameters
from ..training.optimiser_step import spread
from ._grouped import Grouped
from ._written import Move, Written

SETTINGS: dict[str, Any] = {"momentum": 0.9, "nesterov": False}


class Optimiser(Grouped):
    """torch's own."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], rates: Sequence[float], hyperparameters: Hyperparameters
    ) -> None:
        named = zip(rates, hyperparameters.exact("momentum"), hyperparameters.exact("weight_decay"), strict=True)
        each = [{"lr": lr, "momentum": momentum, "weight_decay": decay} for lr, momentum, decay in named]
        nesterov = hyperparameters["nesterov"]
        super().__init__(
            parameters,
            each,
            lambda groups: torch.optim.SGD(groups, lr=0.0, nesterov=nesterov, fused=True),
            InTensors.names,
            hyperparameters,
        )

    def written(self) -> Written:
        """The same, going on from here, in operations that can be traced."""
        return self.going_on(InTensors)


class InTensors(Written):
    """g <- g + wd p, m <- mu m + g, p <- p - lr m; p - lr (g + mu m) with Nesterov's momentum. From m = 0 the first
    step leaves m = g, which is what torch begins with."""

    names = ("momentum_buffer",)

    def __init__(
        self, parameters: Sequence[nn.Parameter], rates: Sequence[float], hyperparameters: Hyperparameters
    ) -> None:
        super().__init__(parameters, rates, hyperparameters)
        self.momentum, self.nesterov = self.per_replica(hyperparameters.exact("momentum")), hyperparameters["nesterov"]

    def mover(self, factor: float | Tensor) -> Move:
        values = self.rates * factor, self.decay, self.momentum
        rates, decay, momentum = (value.to(self.parameters[0].dtype) for value in values)

        def move(parameter: Tensor, gradient: Tensor, average: Tensor) -> None:
            along = gradient + spread(decay, parameter) * parameter
            average.mul_(spread(momentum, parameter)).add_(along)
            ahead = along + spread(momentum, parameter) * average if self.nesterov else average
            parameter.sub_(spread(rates, parameter) * ahead)

        return move
