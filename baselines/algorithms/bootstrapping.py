"""Bootstrapping: the target is a mixture of the label and the network's own prediction.

    soft: -sum_j [b y_j + (1 - b) p_j] log p_j  =  b CE + (1 - b) entropy of p
    hard: -sum_j [b y_j + (1 - b) z_j] log p_j,  z the one-hot of the largest p_j

Reed et al., ICLR 2015 workshop, section 3.2. The soft target has a gradient, which makes the second term the
entropy that the paper equates it with; implementations that detach it minimise something else.
"""

from typing import Any

from torch import Tensor

from ..training.losses import cross_entropy
from . import EmpiricalRisk, StepState

KIND = "corrupted-label"
CITATION = (
    "Reed, Lee, Anguelov, Szegedy, Erhan and Rabinovich, Training deep neural networks on noisy labels with "
    "bootstrapping, ICLR workshop 2015 (arXiv:1412.6596)"
)
TASKS = ("classification", "sequence")
SETTINGS: dict[str, Any] = {"belief": "soft", "beta": 0.95}
"""belief: `soft` (its probabilities) or `hard` (its choice). beta: the label's share b, in the paper 0.95 for soft and
0.8 for hard."""
SEARCH: dict[str, Any] = {"beta": ["uniform", 0.6, 1.0]}
LIMITS = {"belief": ("soft", "hard")}


class Algorithm(EmpiricalRisk):
    def errors(self, logits: Tensor, target: Tensor, clock: StepState) -> Tensor:
        given = cross_entropy(logits, target)
        soft = self.hyperparameters["belief"] == "soft"
        believed = cross_entropy(logits, logits.softmax(-1) if soft else logits.argmax(-1))
        beta = self.hyperparameters.on("beta", given)
        return beta * given + (1 - beta) * believed
