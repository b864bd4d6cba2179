"""FixMatch: confident predictions on shifted images are pseudo-labels of strongly augmented versions of them.

    CE_S + weight x mean over x in T of 1[max p(x) >= threshold] CE(argmax p(x), f(A(x)))

S are a batch's labelled rows, T as many inputs of the shifted test rows, without labels, both under the recipe's own
augmentation (weak: the setting `augment`); p(x) passes no gradient on, and A is RandAugment of `operations` at
`magnitude`. Sohn et al., NeurIPS 2020, as WILDS (Sagawa et al., ICLR 2022, arXiv:2112.05090) uses it across shifts. The
released codes draw each image's magnitude anew and cut a square out (CutOut); some use more unlabelled rows than
labelled ones, and average weights.
"""

from typing import Any

import torch
from torch import Tensor

from ..augmentations import randaugment
from ..training.augmentation import augment_flat_rows, check_augmentation
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, StepState
from ._shifted import get_shifted_inputs

KIND = "domain"
CITATION = (
    "Sohn et al., FixMatch: simplifying semi-supervised learning with consistency and confidence, NeurIPS 2020 "
    "(arXiv:2001.07685)"
)
TOUCHES = ("train", "unlabelled")
SETTINGS: dict[str, Any] = {"weight": 1.0, "threshold": 0.95, "operations": 2, "magnitude": 9.0}
"""weight and threshold: the paper's. operations, magnitude: `augmentations/randaugment.py`."""
SEARCH: dict[str, Any] = {"weight": ["log10", -1, 1], "threshold": ["uniform", 0.7, 0.95]}


def compute_consistency_loss(weak: Tensor, strong: Tensor, threshold: Tensor) -> Tensor:
    """The mean over rows of the cross-entropy of strong forms' logits (K, n, classes) to the classes that weak forms'
    logits are sure of, (K,). threshold: (K,)."""
    sure, label = weak.detach().softmax(-1).max(-1)
    return (cross_entropy(strong, label) * (sure >= threshold[:, None])).mean(1)


class Algorithm(BaseAlgorithm):
    def set_up(self) -> None:
        check_augmentation("randaugment", randaugment, self.about)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        risk_logits, strong = self._logits(network, batch, clock)
        with torch.no_grad():
            weak = network(*get_shifted_inputs(batch))
        risk = average_over_batch(cross_entropy(risk_logits, batch.target), batch)
        pull = compute_consistency_loss(weak, strong, self.hyperparameters["threshold"])
        return risk + self.hyperparameters["weight"] * pull

    def _logits(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        """Of the labelled rows and of the strong forms of the shifted ones, in one pass."""
        categories, numbers = get_shifted_inputs(batch)
        places = torch.arange(numbers.shape[1], device=numbers.device).expand(numbers.shape[:2])
        given = clock.keys, places, clock.total, self.hyperparameters, self.about.sizes
        strong = augment_flat_rows(randaugment, "fixmatch", numbers, *given)
        pairs = zip(batch.inputs, (categories, strong), strict=True)
        logits = network(*(torch.cat([own, other], dim=1) for own, other in pairs))
        rows = batch.target.shape[1]
        return logits[:, :rows], logits[:, rows:]
