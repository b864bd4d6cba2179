"""Adam, its weight decay added to the gradient. Kingma and Ba, ICLR 2015 (arXiv:1412.6980).

What DomainBed and WILDS train with. Without weight decay it is `adamw`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..replicas.hyperparameters import Hyperparameters
from ..training.optimiser_step import spread
from . import adamw
from ._grouped import Grouped
from ._written import Move, Written

SETTINGS: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}


class Optimiser(Grouped):
    """torch's own, fused."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], rates: Sequence[float], hyperparameters: Hyperparameters
    ) -> None:
        each = adamw.groups(rates, hyperparameters)
        super().__init__(
            parameters, each, lambda groups: torch.optim.Adam(groups, fused=True), InTensors.names, hyperparameters
        )

    def written(self) -> Written:
        """The same, going on from here, in operations that can be traced."""
        return self.going_on(InTensors)


class InTensors(adamw.InTensors):
    """g <- g + wd p, then AdamW's step without decay."""

    def mover(self, factor: float | Tensor) -> Move:
        decay, self.decay = self.decay, torch.zeros_like(self.decay)
        plain = super().mover(factor)
        self.decay = decay
        added = decay.to(self.parameters[0].dtype)

        def move(parameter: Tensor, gradient: Tensor, average: Tensor, square: Tensor) -> None:
            plain(parameter, gradient + spread(added, parameter) * parameter, average, square)

        return move
