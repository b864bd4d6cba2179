"""Preference strength: reward models vote how strong each preference is; the weakest are flipped, the others' strength
is the margin that a last model must reach.

1. M networks are trained one after the other on all pairs, each in its own order. The strength of a pair is their mean
   d = r(x, chosen) - r(x, rejected).
2. The share `flip` of the pairs with the lowest mean strength gets the other label, which turns the sign
   of its strength.
3. A fresh network learns with the loss -log sigma(r(x, chosen) - r(x, rejected) - margin * strength).

Wang et al. 2024: voting of reward models, label flipping and adaptive margin. Without the paper's soft labels
(`label_smoothing` has them) and without its contrastive and meta-learning. Written from the abstract and notes on the
paper.

Not compared with released code: OpenLMLab/MOSS-RLHF trains a plain reward model.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..training.losses import average_over_batch
from . import BaseAlgorithm, Batch, Data, StepState
from ._rows import read_entries, select_smallest

KIND = "corrupted-label"
CITATION = "Wang et al., Secrets of RLHF in large language models part II: reward modeling, 2024 (arXiv:2401.06080)"
SETTINGS: dict[str, Any] = {"members": 4, "vote_percent": 50, "flip": 0.1, "margin": 1.0}
"""members: M. vote_percent: of all steps, for the members, equally. flip: the share of pairs that are flipped. margin:
the factor of the strength; 0 is the plain loss."""
SEARCH: dict[str, Any] = {"flip": ["choice", 0.0, 0.1, 0.2], "margin": ["choice", 0.0, 0.5, 1.0]}
LIMITS = {"members": "at least 1"}


class Algorithm(BaseAlgorithm):
    additive = True
    scores: Tensor
    """The members' mean scores of the training rows, (K, N, classes)."""

    def set_up(self) -> None:
        self.members = self.hyperparameters["members"]
        self.register_buffer("scores", torch.zeros(self.about.replicas, len(self.about.data), self.about.outputs))

    def stages(self, steps: int) -> tuple[int, ...]:
        each = max(1, steps * self.hyperparameters["vote_percent"] // (100 * self.members))
        last = steps - self.members * each
        if last < 1:
            raise ModelError(
                f"preference_strength trains {self.members} members, and of {steps} steps none is left for the last "
                "network: use more steps, or a smaller vote_percent"
            )
        return (*[each] * self.members, last)

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        self.scores = self.scores + answer(*data.inputs).to(self.scores.dtype) / self.members
        if stage == self.members:
            target = data.target.expand(self.scores.shape[:2])
            strength = compute_strength(self.scores, target)
            flipped = select_smallest(strength, (self.hyperparameters["flip"] * strength.shape[1]).round())
            other = self.scores.scatter(2, target[..., None], -torch.inf).argmax(-1)
            data = data.changed(data.weight, torch.where(flipped, other, target))
        return data, True

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        apart = compute_strength(network(*batch.inputs), batch.target)
        if clock.stage == self.members:
            strength = compute_strength(read_entries(self.scores, batch.rows), batch.target).to(apart.dtype)
            apart = apart - self.hyperparameters.on("margin", apart) * strength
        return average_over_batch(-F.logsigmoid(apart), batch)


def compute_strength(scores: Tensor, target: Tensor) -> Tensor:
    """The score of the chosen class minus that of the other, (K, n): scores (K, n, classes), target (K, n). With more
    than two classes the others count as the logarithm of the sum of their exponentials, so that -log sigma is the
    cross-entropy."""
    chosen = target[..., None]
    return scores.gather(2, chosen)[..., 0] - scores.scatter(2, chosen, -torch.inf).logsumexp(-1)
