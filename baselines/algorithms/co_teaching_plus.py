"""Co-teaching+: co-teaching on the rows of a batch on which the predictions of the two networks disagree.

After a warm-up by co-teaching on whole batches, each network learns from those that the other finds easiest of the rows
where their predictions differ: R(t) m of these m rows, or all of them where that is none (Yu et al., ICML 2019,
Algorithm 1). R(t) and its settings are those of co-teaching; the warm-up is a share of the steps (20 of 200 epochs on
CIFAR-10). Where the networks agree about every row nothing is learned. The released code differs from the paper, and is
not followed: after the warm-up it applies a softmax to softmax probabilities, it divides the mean over retained rows
by their number once more, it never counts the training set's first row as disagreed upon, and where all agree its early
steps descend the loss of all rows.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import cross_entropy
from . import Batch, StepState, co_teaching
from ._pair import Pair
from ._rows import compute_selected_mean, select_smallest

KIND = "corrupted-label"
CITATION = (
    "Yu, Han, Yao, Niu, Tsang and Sugiyama, How does disagreement help generalization against label corruption?, "
    "ICML 2019 (arXiv:1901.04215)"
)
SETTINGS: dict[str, Any] = {"forget": 0.2, "gradual_percent": 5.0, "warm_percent": 10}
"""forget, gradual_percent: as in co-teaching. warm_percent: of the steps, by co-teaching."""
SEARCH: dict[str, Any] = {
    "forget": ["uniform", 0.05, 0.6],
    "gradual_percent": ["choice", 2.5, 5.0, 7.5],
    "warm_percent": ["choice", 0, 2, 10, 20],
}


class Algorithm(co_teaching.Algorithm):
    def loss(self, network: Pair, batch: Batch, clock: StepState) -> Tensor:
        if 100 * clock.step < self.hyperparameters["warm_percent"] * clock.steps:
            return super().loss(network, batch, clock)
        logits = [branch(*batch.inputs) for branch in (network.first, network.second)]
        errors = [cross_entropy(branch, batch.target) for branch in logits]
        disagrees = logits[0].argmax(-1) != logits[1].argmax(-1)
        rows = disagrees.sum(1)
        count = (self.share(clock).to(rows.device) * rows).long()
        count = torch.where(count > 0, count, rows)
        # Rows that are agreed upon come last, and are never among the first `count`.
        masks = [select_smallest(error.detach().masked_fill(~disagrees, torch.inf), count) for error in errors]
        return compute_selected_mean(errors[0], masks[1], batch) + compute_selected_mean(errors[1], masks[0], batch)
