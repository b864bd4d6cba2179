"""Adam with weight decay added to the gradient (L2 penalty). Kingma and Ba, ICLR 2015 (arXiv:1412.6980).

DomainBed and WILDS train with it. Without weight decay it is equal to `adamw`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ..replicas.hyperparameters import Hyperparameters
from . import adamw
from ._grouped import GroupedOptimiser

SETTINGS: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}


class Optimiser(GroupedOptimiser):
    """torch's own, fused."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], rates: Sequence[float], hyperparameters: Hyperparameters
    ) -> None:
        each = adamw.make_parameter_groups(rates, hyperparameters)
        super().__init__(parameters, each, lambda groups: torch.optim.Adam(groups, fused=True), adamw.STATE)
