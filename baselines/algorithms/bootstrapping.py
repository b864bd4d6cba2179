"""Bootstrapping: the target is a mixture of the label and the network's own prediction.

    soft: -sum_j [b y_j + (1 - b) p_j] log p_j  =  b CE + (1 - b) entropy of p
    hard: -sum_j [b y_j + (1 - b) z_j] log p_j,  z the one-hot of the largest p_j

Reed et al., ICLR 2015 workshop, section 3.2. The soft target has a gradient, which makes the second term the
entropy that the paper equates it with; implementations that detach it minimise something else.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, StepState
from ._soft import soft_cross_entropy

KIND = "corrupted-label"
CITATION = (
    "Reed, Lee, Anguelov, Szegedy, Erhan and Rabinovich, Training deep neural networks on noisy labels with "
    "bootstrapping, ICLR workshop 2015 (arXiv:1412.6596)"
)
TASKS = ("classification", "sequence")
TOUCHES = ("train",)
SETTINGS: dict[str, Any] = {"belief": "soft", "beta": 0.95}
"""belief: `soft` (its probabilities) or `hard` (its choice). beta: the label's share b, in the paper 0.95 for soft and
0.8 for hard."""
SEARCH: dict[str, Any] = {"beta": ["uniform", 0.6, 1.0]}
LIMITS = {"belief": ("soft", "hard")}


class Algorithm(BaseAlgorithm):
    additive = True

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        logits = network(*batch.inputs)
        given = cross_entropy(logits, batch.target)
        if self.hyperparameters["belief"] == "soft":
            believed = soft_cross_entropy(logits, logits.softmax(-1))
        else:
            believed = cross_entropy(logits, logits.argmax(-1))
        beta = self.hyperparameters.on("beta", given)
        return average_over_batch(beta * given + (1 - beta) * believed, batch)
