"""Adam with weight decay added to the gradient (L2 penalty). Kingma and Ba, ICLR 2015 (arXiv:1412.6980).

DomainBed and WILDS train with it. Without weight decay it is equal to `adamw`.
"""

from typing import Any

import torch

from ..replicas.hyperparameters import Hyperparameters
from ._grouped import GroupedOptimiser

SETTINGS: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}


class Optimiser(GroupedOptimiser):
    """torch's own, fused."""

    def make(self, groups: list[dict[str, Any]], hyperparameters: Hyperparameters) -> torch.optim.Optimizer:
        return torch.optim.Adam(groups, fused=True)
