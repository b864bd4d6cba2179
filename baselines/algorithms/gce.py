"""Generalised cross-entropy: a loss between cross-entropy (q towards 0) and the mean absolute error (q = 1).

    L_q(p_y) = (1 - p_y^q) / q,  and truncated  L_q(k) where p_y <= k

Zhang and Sabuncu, NeurIPS 2018, sections 3.2 and 3.3. A truncated row has no gradient. The paper minimises the
truncated loss in turns, with one choice of rows for ten epochs. Here every batch chooses anew, which descends the
same objective. Truncation begins after a third of the steps, as in the paper (40 of 120 epochs): a network that knows
nothing yet gives every row less than k.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import cross_entropy
from . import EmpiricalRisk, StepState

KIND = "corrupted-label"
CITATION = (
    "Zhang and Sabuncu, Generalized cross entropy loss for training deep neural networks with noisy labels, "
    "NeurIPS 2018 (arXiv:1805.07836)"
)
TASKS = ("classification", "sequence")
SETTINGS: dict[str, Any] = {"q": 0.7, "truncation": 0.5, "start": 0.333}
"""q: in (0, 1]. truncation: k, the probability of the label at and below which a row is left out; 0 for none. start:
the share of the steps before which none is left out."""
SEARCH: dict[str, Any] = {"q": ["uniform", 0.1, 1.0], "truncation": ["choice", 0.0, 0.5]}
LIMITS = {"q": "above 0 and at most 1"}


class Algorithm(EmpiricalRisk):
    def errors(self, logits: Tensor, target: Tensor, clock: StepState) -> Tensor:
        surprise = cross_entropy(logits, target)
        q = self.hyperparameters.on("q", surprise)
        begun = clock.step >= self.hyperparameters.on("start", surprise) * clock.steps
        limit = -self.hyperparameters.on("truncation", surprise).log()
        return generalised_cross_entropy(torch.where(begun & (surprise >= limit), limit, surprise), q)


def generalised_cross_entropy(surprise: Tensor, q: Tensor) -> Tensor:
    """(1 - p^q) / q of -log p, elementwise."""
    return -torch.expm1(-q * surprise) / q
