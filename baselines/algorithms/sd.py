"""Spectral decoupling: a penalty on the squared logits, against gradient starvation.

    mean [ cross-entropy + weight x mean_c z_c^2 ]                                       (equation 25)

The mean over classes is DomainBed's, which the default weight assumes; the paper's experiments weight the sum.
"""

from typing import Any

from torch import Tensor

from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, StepState

KIND = "domain"
CITATION = (
    "Pezeshki, Kaba, Bengio, Courville, Precup and Lajoie, Gradient Starvation: A Learning Proclivity in Neural "
    "Networks, NeurIPS 2021 (arXiv:2011.09468)"
)
TASKS = ("classification", "sequence")
SETTINGS: dict[str, Any] = {"penalty": 0.1}
"""DomainBed's default."""
SEARCH: dict[str, Any] = {"penalty": ["log10", -5, -1]}


class Algorithm(BaseAlgorithm):
    additive = True

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        logits = network(*batch.inputs)
        risk = average_over_batch(cross_entropy(logits, batch.target), batch)
        return risk + self.hyperparameters["penalty"] * average_over_batch(logits.square().mean(-1), batch)
