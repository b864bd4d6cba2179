"""Mean absolute error: a loss that is robust to symmetric label noise, as its sum over all labels is constant.

    sum_c |p_c - 1[c = y]| = 2 (1 - p_y)

Ghosh, Kumar and Sastry, AAAI 2017, for symmetric noise of less than 1 - 1 / C of all labels. The gradient of a row is
small where p_y is small, so that training is slow (Zhang and Sabuncu, NeurIPS 2018).
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import cross_entropy
from . import EmpiricalRisk, StepState

KIND = "corrupted-label"
CITATION = (
    "Ghosh, Kumar and Sastry, Robust loss functions under label noise for deep neural networks, AAAI 2017 "
    "(arXiv:1712.09482)"
)
TASKS = ("classification", "sequence")
SETTINGS: dict[str, Any] = {}


class Algorithm(EmpiricalRisk):
    def errors(self, logits: Tensor, target: Tensor, clock: StepState) -> Tensor:
        # 1 - p = -(e^(-surprise) - 1)
        return -2 * torch.expm1(-cross_entropy(logits, target))
