"""Stochastic gradient descent with momentum. Sutskever et al., ICML 2013; weight decay is added to the gradient."""

from typing import Any

import torch

from ..replicas.hyperparameters import Hyperparameters
from ._grouped import GroupedOptimiser

SETTINGS: dict[str, Any] = {"momentum": 0.9, "nesterov": False}


class Optimiser(GroupedOptimiser):
    """torch's own."""

    state_names = ("momentum_buffer",)

    def make(self, groups: list[dict[str, Any]], hyperparameters: Hyperparameters) -> torch.optim.Optimizer:
        return torch.optim.SGD(groups, lr=0.0, nesterov=hyperparameters["nesterov"], fused=True)

    def list_options(self, hyperparameters: Hyperparameters) -> list[dict[str, Any]]:
        return [{"momentum": momentum} for momentum in hyperparameters.exact("momentum")]

    def move(self) -> None:
        """Take the step. torch's fused kernel needs the momenta of all parameters or of none, and the gradients of some
        begin later: their momenta are then 0."""
        for group in self.optimiser.param_groups:
            moved = [view for view in group["params"] if group["momentum"] and view.grad is not None]
            lacking = [view for view in moved if self.optimiser.state[view].get("momentum_buffer") is None]
            for view in lacking if len(lacking) < len(moved) else ():
                self.optimiser.state[view]["momentum_buffer"] = torch.zeros_like(view)
        super().move()
