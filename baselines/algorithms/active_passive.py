"""Active and passive losses: normalised cross-entropy (active) plus reverse cross-entropy (passive).

    a CE_y / sum_c CE_c + b (-A) (1 - p_y),   CE_c = -log p_c,  A = log 1e-4

Ma et al., ICML 2020, section 3.2; A as in the released code, which clips one-hot labels at 1e-4 and, where
nothing is clipped here, probabilities at 1e-7.
"""

import math
from typing import Any

import torch
from torch import Tensor

from . import EmpiricalRisk, StepState

KIND = "corrupted-label"
CITATION = (
    "Ma, Huang, Wang, Romano, Erfani and Bailey, Normalized loss functions for deep learning with noisy labels, "
    "ICML 2020 (arXiv:2006.13554)"
)
SETTINGS: dict[str, Any] = {"alpha": 1.0, "beta": 1.0}
"""alpha, beta: the weights a and b (1 and 1 on CIFAR-10, 10 and 0.1 on CIFAR-100)."""
SEARCH: dict[str, Any] = {"alpha": ["choice", 0.1, 1.0, 10.0], "beta": ["choice", 0.1, 1.0, 10.0]}

LOG_ZERO = math.log(1e-4)


class Algorithm(EmpiricalRisk):
    def errors(self, logits: Tensor, target: Tensor, clock: StepState) -> Tensor:
        surprises = -logits.log_softmax(-1)
        own = surprises.gather(-1, target[..., None])[..., 0]
        alpha, beta = (self.hyperparameters.on(name, own) for name in ("alpha", "beta"))
        # -A (1 - p) = A (e^(-surprise) - 1)
        return alpha * own / surprises.sum(-1) + beta * LOG_ZERO * torch.expm1(-own)
