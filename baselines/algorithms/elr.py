"""Early-learning regularisation: predictions are kept close to their moving average, to prevent memorisation.

    CE + l mean_i log(1 - <p_i, t_i>),  t_i <- b t_i + (1 - b) p_i  whenever row i is seen

Liu et al., NeurIPS 2020, section 4. As in the released code, t_i moves before the loss is computed, begins at 0 and has
no gradient, and p is clipped to [1e-4, 1 - 1e-4], without which the logarithm of a certain row is infinite.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, StepState
from ._rows import read_entries, write_entries

KIND = "corrupted-label"
CITATION = (
    "Liu, Niles-Weed, Razavian and Fernandez-Granda, Early-learning regularization prevents memorization of noisy "
    "labels, NeurIPS 2020 (arXiv:2007.00151)"
)
SETTINGS: dict[str, Any] = {"strength": 3.0, "keep": 0.7}
"""strength: l (3 on CIFAR-10, 7 on CIFAR-100, 1 under asymmetric noise). keep: b (0.7, 0.9, 0.9)."""
SEARCH: dict[str, Any] = {"strength": ["choice", 1.0, 3.0, 5.0, 7.0, 10.0], "keep": ["choice", 0.5, 0.7, 0.9, 0.99]}

LEAST = 1e-4
"""Probabilities are clipped to this distance from 0 and 1."""


class Algorithm(BaseAlgorithm):
    additive = True
    remembers = True
    believed: Tensor

    def set_up(self) -> None:
        self.register_buffer("believed", torch.zeros(self.about.replicas, len(self.about.data), self.about.outputs))

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        logits = network(*batch.inputs)
        p = logits.softmax(-1).clamp(LEAST, 1 - LEAST)
        keep = self.hyperparameters.on("keep", p)
        now = p.detach() / p.detach().sum(-1, keepdim=True)
        target = keep * read_entries(self.believed, batch.rows) + (1 - keep) * now
        write_entries(self.believed, batch.rows, target)
        agreement = (p * target).sum(-1)
        regulariser = self.hyperparameters.on("strength", agreement) * torch.log1p(-agreement)
        return average_over_batch(cross_entropy(logits, batch.target) + regulariser, batch)
