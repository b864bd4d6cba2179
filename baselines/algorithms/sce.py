"""Symmetric cross-entropy: cross-entropy plus reverse cross-entropy, with a constant A for log 0.

    a CE + b RCE,  RCE = -sum_j p_j log y_j = -A (1 - p_y)

Wang et al., ICCV 2019, section 3, with A = -4. The released code clips the one-hot labels at 1e-4 instead, which is
A = -9.2, and clips p at 1e-7, where cross-entropy loses its gradient; here A is the paper's and nothing is clipped.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import cross_entropy
from . import EmpiricalRisk, StepState

KIND = "corrupted-label"
CITATION = (
    "Wang, Ma, Chen, Luo, Yi and Bailey, Symmetric cross entropy for robust learning with noisy labels, ICCV 2019 "
    "(arXiv:1908.06112)"
)
TASKS = ("classification", "sequence")
SETTINGS: dict[str, Any] = {"alpha": 0.1, "beta": 1.0, "log_zero": -4.0}
"""alpha, beta: the weights a and b (0.1 and 1 on CIFAR-10, 6 and 0.1 on CIFAR-100). log_zero: A, negative."""
SEARCH: dict[str, Any] = {
    "alpha": ["choice", 0.01, 0.1, 1.0, 6.0],
    "beta": ["choice", 0.1, 1.0],
    "log_zero": ["choice", -8.0, -6.0, -4.0, -2.0],
}


class Algorithm(EmpiricalRisk):
    def errors(self, logits: Tensor, target: Tensor, clock: StepState) -> Tensor:
        surprise = cross_entropy(logits, target)
        alpha, beta, log_zero = (self.hyperparameters.on(name, surprise) for name in ("alpha", "beta", "log_zero"))
        reverse = log_zero * torch.expm1(-surprise)
        return alpha * surprise + beta * reverse
