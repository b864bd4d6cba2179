"""Mixup between environments: training on interpolations between rows of two environments.

    mean over pairs (e, f) of loss(f(l x_e + (1 - l) x_f), l y_e + (1 - l) y_f),  l ~ Beta(alpha, alpha)

Each step pairs the environments in a random circle, every one with its successor, and draws one l a pair: DomainBed's
form (Gulrajani and Lopez-Paz, ICLR 2021, arXiv:2007.01434), whose default alpha this is.
"""

from typing import Any

import torch
from torch import Tensor

from ..replicas.rng import draw_permutations
from . import BaseAlgorithm, Batch, StepState
from .mixup import compute_mixed_loss, draw_shares

KIND = "domain"
CITATION = (
    "Yan, Song, Li, Zou and Ren, Improve Unsupervised Domain Adaptation with Mixup Training, 2020 (arXiv:2001.00677)"
)
TASKS = ("classification", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"alpha": 0.2, "batch_size": 32}
"""alpha: above 0, the larger the nearer to even mixes."""
SEARCH: dict[str, Any] = {"alpha": ["log10", -1, 1]}
LIMITS = {"alpha": "above 0"}


def draw_successors(keys: Tensor, environments: int) -> Tensor:
    """Each environment's successor in a random circle, (K, E)."""
    circle = draw_permutations(keys, environments)
    return torch.empty_like(circle).scatter_(1, circle, circle.roll(-1, dims=1))


class Algorithm(BaseAlgorithm):
    by_environment = True

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        rows = batch.target.shape[1] // batch.environments
        following = draw_successors(clock.draw("pairs"), batch.environments)
        partner = (following[:, :, None] * rows + torch.arange(rows, device=following.device)).flatten(1)
        share = draw_shares(self.hyperparameters, clock.draw("shares"), batch.environments).repeat_interleave(
            rows, dim=1
        )
        return compute_mixed_loss(network, batch, partner, share)
