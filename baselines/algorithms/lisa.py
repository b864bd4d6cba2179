"""LISA: mixup of rows of one class and two environments, or of one environment and two classes.

    CE(f(l x_i + (1 - l) x_j), l y_i + (1 - l) y_j),    l ~ Beta(alpha, alpha) for each pair

In a step, with chance `within_class`, the partner j of each row i is one of the same label from another environment
(intra-label), and otherwise one of another label from the same environment (intra-domain): Yao et al., algorithm 1. A
row without a partner in the batch is unchanged. The released code forms pairs of four given groups, or of two halves of
a label's rows, each row in one pair; here every row has a partner, drawn uniformly with replacement, for any classes
and environments. Its regions cut from images (CutMix) are the augmentation `cutmix`.
"""

from typing import Any

import torch
from torch import Tensor

from ..replicas.rng import draw_uniform
from . import BaseAlgorithm, Batch, StepState
from .mixup import compute_mixed_loss, draw_shares

KIND = "domain"
CITATION = (
    "Yao et al., Improving out-of-distribution robustness via selective augmentation, ICML 2022 (arXiv:2201.00299)"
)
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"alpha": 2.0, "within_class": 0.5, "batch_size": 16}
"""alpha: above 0, the larger the nearer to even mixes; within_class: p_sel (both the released code's defaults).
batch_size: rows of each environment."""
SEARCH: dict[str, Any] = {"alpha": ["choice", 0.5, 2.0], "within_class": ["choice", 0.0, 0.5, 1.0]}
LIMITS = {"alpha": "above 0"}


def draw_partners(keys: Tensor, target: Tensor, group: Tensor, within_class: Tensor) -> Tensor:
    """A partner for each row (K, n), itself where it has none. target, group: (K, n). within_class: (K,), whether
    partners share the label and not the environment, or the environment and not the label."""
    label, environment = (values[:, :, None] == values[:, None] for values in (target, group))
    fits = torch.where(within_class[:, None, None], label & ~environment, environment & ~label)
    drawn = torch.where(fits, draw_uniform(keys, fits.shape[1:]), -1)
    own = torch.arange(target.shape[1], device=target.device)
    return torch.where(fits.any(-1), drawn.argmax(-1), own)


class Algorithm(BaseAlgorithm):
    by_environment = True

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        assert batch.group is not None
        chance = draw_uniform(clock.draw("strategy"), (), torch.float64)
        within_class = chance < self.hyperparameters["within_class"]
        partner = draw_partners(clock.draw("partners"), batch.target, batch.group, within_class)
        share = draw_shares(self.hyperparameters, clock.draw("shares"), batch.target.shape[1])
        return compute_mixed_loss(network, batch, partner, share)
