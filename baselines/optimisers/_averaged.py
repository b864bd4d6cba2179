"""Optimisers with one moving average of each parameter's gradient, and a learning rate per replica."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..replicas.hyperparameters import Hyperparameters
from ..training.optimiser_step import broadcast_values


class AveragingOptimiser(ABC):
    """p <- (1 - lr wd) p - lr direction, with weight decay decoupled from the gradient.

    Subclasses say what the direction is, and move the average, which is (K, ..) as the parameter, zeros at first."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], rates: Sequence[float], hyperparameters: Hyperparameters
    ) -> None:
        self.parameters = list(parameters)
        self.rates = self.per_replica(rates)
        self.decay = self.per_replica(hyperparameters.exact("weight_decay"))
        self.averages: dict[str, Tensor] = {}
        self.steps = 0

    def per_replica(self, values: Sequence[float]) -> Tensor:
        """A setting of each replica, (K,), at its full precision."""
        return torch.tensor(values, dtype=torch.float64, device=self.parameters[0].device)

    @abstractmethod
    def direction(self, average: Tensor, gradient: Tensor) -> Tensor:
        """The direction of a parameter's step, (K, ..) as the parameter; `average` is updated in place."""

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """One step along the parameters' `.grad`, at `factor` of each replica's learning rate."""
        self.steps += 1
        exact = self.rates * factor
        rates, shares = (values.to(self.parameters[0].dtype) for values in (exact, 1 - exact * self.decay))
        for number, parameter in enumerate(self.parameters):
            if parameter.grad is not None:
                average = self.averages.setdefault(f"average/{number}", torch.zeros_like(parameter))
                along = self.direction(average, parameter.grad)
                parameter.mul_(broadcast_values(shares, parameter)).sub_(along.mul_(broadcast_values(rates, parameter)))

    def state(self) -> dict[str, Any]:
        """The state between steps: tensors (K, ..), and how many steps there were."""
        return {"steps": self.steps} | {name: value.clone() for name, value in self.averages.items()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `state` returned."""
        self.steps = int(state["steps"])
        self.averages = {name: value.clone() for name, value in state.items() if isinstance(value, Tensor)}
