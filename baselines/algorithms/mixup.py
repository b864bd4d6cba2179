"""Mixup: training on convex combinations of pairs of rows and of their labels.

    loss(f(l x_i + (1 - l) x_j), l y_i + (1 - l) y_j),  l ~ Beta(alpha, alpha),  j a random partner of i

One l for all rows of a batch, partners by a permutation of it, as the authors' code. The network's embeddings are
mixed, so that categories can be too. Cross-entropy is linear in the label, so the loss is the mix of two losses; so it
is for numbers, whose squared error differs from that mix by a term without gradient.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..replicas.hyperparameters import Hyperparameters
from ..replicas.rng import draw_beta, draw_permutations
from ..training.losses import average_over_batch, compute_task_loss
from . import BaseAlgorithm, Batch, StepState
from ._rows import take_rows

KIND = "corrupted-label"
CITATION = (
    "Zhang, Cisse, Dauphin and Lopez-Paz, mixup: Beyond Empirical Risk Minimization, ICLR 2018 (arXiv:1710.09412)"
)
TASKS = ("classification", "regression")
SETTINGS: dict[str, Any] = {"alpha": 1.0}
"""alpha: above 0, the larger the nearer to even mixes. The paper's for CIFAR-10; under corrupted labels it searches
1, 2, 8 and 32 and reports 8 and 32 (table 2)."""
SEARCH: dict[str, Any] = {"alpha": ["choice", 1.0, 2.0, 8.0, 32.0]}
LIMITS = {"alpha": "above 0"}


def draw_shares(hyperparameters: Hyperparameters, keys: Tensor, count: int) -> Tensor:
    """`count` draws from each replica's Beta(alpha, alpha), (K, count)."""
    drawn = [
        draw_beta(key[None], (count,), alpha) for key, alpha in zip(keys, hyperparameters.exact("alpha"), strict=True)
    ]
    return torch.cat(drawn).to(hyperparameters.dtype)


def compute_mixed_loss(network: Any, batch: Batch, partner: Tensor, share: Tensor) -> Tensor:
    """The loss of rows mixed with their partners (K, n), each with a share (K, n) of its own label: (K,)."""
    x = network.embed(*batch.inputs)
    keeps = share.view(*share.shape, *[1] * (x.ndim - 2))
    logits = network.head(network.encode(keeps * x + (1 - keeps) * take_rows(x, partner)))
    own, other = (compute_task_loss(logits, target) for target in (batch.target, take_rows(batch.target, partner)))
    return average_over_batch(share * own + (1 - share) * other, weight_by_partners(batch, partner))


def weight_by_partners(batch: Batch, partner: Tensor) -> Batch:
    """The batch, each of whose rows counts by the product of its weight and its partner's (K, n), as if both had been
    drawn by them."""
    if batch.weight is None:
        return batch
    return replace(batch, weight=batch.weight * batch.weight.gather(1, partner))


class Algorithm(BaseAlgorithm):
    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        partner = draw_permutations(clock.draw("partners"), batch.target.shape[1])
        share = draw_shares(self.hyperparameters, clock.draw("shares"), 1).expand(partner.shape)
        return compute_mixed_loss(network, batch, partner, share)
