"""Focal loss: cross-entropy in which rows that are already predicted well have less weight.

    mean_i (1 - p_y)^gamma (-log p_y)

Lin et al., ICCV 2017, equation 4, of softmax probabilities, and without the weights of classes (equation 5).
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import cross_entropy
from . import EmpiricalRisk, StepState

KIND = "domain"
CITATION = "Lin, Goyal, Girshick, He and Dollár, Focal loss for dense object detection, ICCV 2017 (arXiv:1708.02002)"
TASKS = ("classification", "sequence")
SETTINGS: dict[str, Any] = {"gamma": 2.0}
"""gamma: 0 or more; 0 is cross-entropy. 2 is the paper's."""
SEARCH: dict[str, Any] = {"gamma": ["choice", 0.5, 1.0, 2.0, 5.0]}
LIMITS = {"gamma": "at least 0"}


class Algorithm(EmpiricalRisk):
    def errors(self, logits: Tensor, target: Tensor, clock: StepState) -> Tensor:
        surprise = cross_entropy(logits, target)
        # 1 - p without cancellation; its logarithm has no slope at p = 1, where the row counts nothing.
        missed = -torch.expm1(-surprise)
        gamma = self.hyperparameters.on("gamma", surprise)
        share = torch.where(missed > 0, missed.clamp(min=torch.finfo(missed.dtype).tiny) ** gamma, 0.0 * missed)
        return torch.where(gamma == 0, surprise, share * surprise)
