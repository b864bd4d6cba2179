"""Optimisers written over stacked parameters, every replica at its own rate, in operations that can be traced.

torch's fused optimisers hold one set of rates a parameter group, and count their steps where a graph cannot see them.
What is written here keeps everything in tensors, so that a whole training step, the optimiser's included, can be one
graph (`training/graphs/capture.py`)."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from ..replicas.hyperparameters import Hyperparameters

Move = Callable[..., None]
"""`move(parameter, gradient, *kept)` of one parameter, in place; all (K, ..)."""


class Written(ABC):
    """Subclasses say which tensors they keep of a parameter, and how one step moves it."""

    names: tuple[str, ...]
    """What is kept of each parameter, (K, ..) as the parameter, zeros at first."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], rates: Sequence[float], hyperparameters: Hyperparameters
    ) -> None:
        self.parameters = list(parameters)
        self.rates = self.per_replica(rates)
        self.decay = self.per_replica(hyperparameters.exact("weight_decay"))
        self.kept: dict[str, Tensor] = {}
        self.steps = torch.zeros_like(self.rates)  # (K,): what a compiled graph writes to a tensor () can be lost

    def per_replica(self, values: Sequence[float]) -> Tensor:
        """A setting of each replica, (K,), as exact as it was given."""
        return torch.tensor(values, dtype=torch.float64, device=self.parameters[0].device)

    @abstractmethod
    def mover(self, factor: float | Tensor) -> Move:
        """How this step moves a parameter, at `factor` of each replica's learning rate; `steps` counts it already."""

    @torch.no_grad()
    def step(self, factor: float | Tensor) -> None:
        """One step along the parameters' `.grad`, at `factor` of each replica's learning rate."""
        self.steps += 1
        move = self.mover(factor)
        for place, parameter in enumerate(self.parameters):
            if parameter.grad is not None:
                kept = (self.kept.setdefault(f"{name}/{place}", torch.zeros_like(parameter)) for name in self.names)
                move(parameter, parameter.grad, *kept)

    def state(self) -> dict[str, Any]:
        """All that is remembered between steps: tensors (K, ..), and how many steps there were."""
        return {"steps": int(self.steps[0])} | {name: value.clone() for name, value in self.kept.items()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.steps.fill_(state["steps"])
        self.kept = {name: value.clone() for name, value in state.items() if isinstance(value, Tensor)}

    def tensors(self) -> dict[str, Tensor]:
        """The same as `state`, as the very tensors that a step moves."""
        return {"steps": self.steps, **self.kept}

    def over(self, parameters: Callable[[nn.Parameter], Any], tensors: Mapping[str, Tensor]) -> Self:
        """The same optimiser over other parameters and other such tensors."""
        found = copy.copy(self)
        found.parameters = [parameters(parameter) for parameter in self.parameters]
        found.steps = tensors["steps"]
        found.kept = {name: tensors[name] for name in self.kept}
        return found
