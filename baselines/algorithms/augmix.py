"""AugMix with its consistency loss: an image and two mixtures of it should get the same prediction.

    CE(f(x), y) + lambda JS(f(x), f(x'), f(x'')),   x', x'' two draws of the augmentation `augmix` of x

Hendrycks et al., ICLR 2020 (arXiv:1912.02781), section 3: JS is the Jensen-Shannon divergence of the three predictions,
the mean of their Kullback-Leibler divergences from their mean; lambda is 12. Cross-entropy is of the unmixed image,
and the mean is cut off at 1e-7, as in the released code. The setting `augment` comes before: there flips and shifts
(`flip_crop`). Without the consistency loss AugMix is an augmentation like others: `augment = "augmix"`.
"""

from typing import Any

import torch
from torch import Tensor

from ..augmentations import augmix
from ..training.augmentation import augment_flat_rows, check_augmentation
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, StepState

KIND = "domain"
CITATION = (
    "Hendrycks, Mu, Cubuk, Zoph, Gilmer and Lakshminarayanan, AugMix: A Simple Data Processing Method to Improve "
    "Robustness and Uncertainty, ICLR 2020 (arXiv:1912.02781)"
)
SETTINGS: dict[str, Any] = {
    "consistency": 12.0,
    "chains": 3,
    "chain_depth": 0,
    "severity": 3.0,
    "all_operations": False,
}
"""consistency: the weight of the divergence. The others: `augmentations/augmix.py`."""

LEAST = 1e-7


def jensen_shannon_divergence(*logits: Tensor) -> Tensor:
    """The Jensen-Shannon divergence of each row's predictions, logits (K, n, classes) each: (K, n)."""
    logs = [values.log_softmax(-1) for values in logits]
    middle = torch.stack([values.exp() for values in logs]).mean(0).clamp(LEAST, 1).log()
    return torch.stack([(values.exp() * (values - middle)).sum(-1) for values in logs]).mean(0)


class Algorithm(BaseAlgorithm):
    additive = True

    def set_up(self) -> None:
        check_augmentation("augmix", augmix, self.about)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        categories, numbers = batch.inputs
        views = [numbers]
        for which in ("first", "second"):
            given = clock.keys, batch.rows, clock.total, self.hyperparameters, self.about.sizes
            views.append(augment_flat_rows(augmix, f"consistency/{which}", numbers, *given))
        joined = network(torch.cat([categories] * 3, dim=1), torch.cat(views, dim=1))
        own, first, second = joined.chunk(3, dim=1)
        weight = self.hyperparameters.on("consistency", own[..., 0])
        return average_over_batch(
            cross_entropy(own, batch.target) + weight * jensen_shannon_divergence(own, first, second), batch
        )
