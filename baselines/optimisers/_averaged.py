"""Optimisers that keep one moving average of each parameter's gradient."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from ..training.optimiser_step import spread
from ._written import Move, Written


class Averaged(Written):
    """p <- (1 - lr wd) p - lr direction, with weight decay decoupled from the gradient.

    Subclasses say what the direction is, and move the average."""

    names = ("average",)

    @abstractmethod
    def direction(self, average: Tensor, gradient: Tensor) -> Tensor:
        """Where a parameter goes, (K, ..) as the parameter; `average` is moved in place."""

    def mover(self, factor: float | Tensor) -> Move:
        exact = self.rates * factor
        rates, kept = (values.to(self.parameters[0].dtype) for values in (exact, 1 - exact * self.decay))

        def move(parameter: Tensor, gradient: Tensor, average: Tensor) -> None:
            along = self.direction(average, gradient)
            parameter.mul_(spread(kept, parameter)).sub_(along.mul_(spread(rates, parameter)))

        return move
