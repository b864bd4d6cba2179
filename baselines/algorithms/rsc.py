"""Representation self-challenging: the features with the largest gradients are muted in training.

Of each row, the share f of features with the largest gradient of the true class's logit are muted; of a batch, in the
share b of rows whose true class loses most probability by it. The loss is the cross-entropy after that. Huang et al.,
ECCV 2020, on features that are vectors, as in DomainBed (ICLR 2021, arXiv:2007.01434). Where the head is linear the
gradient is the true class's row of its weights.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, StepState

KIND = "domain"
CITATION = "Huang et al., Self-challenging improves cross-domain generalization, ECCV 2020 (arXiv:2007.02454)"
SETTINGS: dict[str, Any] = {"muted_features": 0.3333333333333333, "muted_rows": 0.3333333333333333}
"""Shares f and b."""
SEARCH: dict[str, Any] = {"muted_features": ["uniform", 0, 0.5], "muted_rows": ["uniform", 0, 0.5]}


def quantile(values: Tensor, share: Tensor) -> Tensor:
    """The quantile at `share` (K,) over the last axis of values (K, .., n), linear between ranks: (K, .., 1)."""
    position = share.view(-1, *[1] * (values.ndim - 1)) * (values.shape[-1] - 1)
    position = position.expand(*values.shape[:-1], 1)
    below = position.floor()
    ranked = values.sort(dim=-1).values
    low, high = ranked.gather(-1, below.long()), ranked.gather(-1, position.ceil().long())
    return low + (position - below) * (high - low)


class Algorithm(BaseAlgorithm):
    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        features = network.encode(network.embed(*batch.inputs))
        mask = self.compute_mask(network.head, features.detach(), batch.target)
        return average_over_batch(cross_entropy(network.head(features * mask), batch.target), batch)

    def compute_mask(self, head: Any, features: Tensor, target: Tensor) -> Tensor:
        """1 for a feature that stays and 0 for one that is muted, like features (K, n, width), a leaf of its graph."""
        own = target[..., None]
        logits = head(features.requires_grad_())
        (slopes,) = torch.autograd.grad(logits.gather(-1, own).sum(), features)
        with torch.no_grad():
            stays = slopes < quantile(slopes, 1 - self.hyperparameters["muted_features"])
            muted = head(features * stays)
            lost = (logits.softmax(-1) - muted.softmax(-1)).gather(-1, own)[..., 0]
            spared = lost < quantile(lost, 1 - self.hyperparameters["muted_rows"])
            return (stays | spared[..., None]).to(features.dtype)
