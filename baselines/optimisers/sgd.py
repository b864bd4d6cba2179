"""Stochastic gradient descent with momentum. Sutskever et al., ICML 2013; weight decay is added to the gradient."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ..replicas.hyperparameters import Hyperparameters
from ._grouped import GroupedOptimiser

SETTINGS: dict[str, Any] = {"momentum": 0.9, "nesterov": False}


class Optimiser(GroupedOptimiser):
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
            ("momentum_buffer",),
        )

    def move(self) -> None:
        """Take the step. torch's fused kernel needs the momenta of all parameters or of none, and the gradients of some
        begin later: their momenta are then 0."""
        for group in self.optimiser.param_groups:
            moved = [view for view in group["params"] if group["momentum"] and view.grad is not None]
            lacking = [view for view in moved if self.optimiser.state[view].get("momentum_buffer") is None]
            for view in lacking if len(lacking) < len(moved) else ():
                self.optimiser.state[view]["momentum_buffer"] = torch.zeros_like(view)
        super().move()
