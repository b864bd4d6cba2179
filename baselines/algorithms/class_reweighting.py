"""Class reweighting: each row is weighted by the inverse frequency of its class in training.

    sum_i w_(y_i) CE_i / sum_i w_(y_i),  w_c = 1 / n_c,  n_c the weight of all training rows with label c

Idrissi, Arjovsky, Pezeshki and Lopez-Paz, CLeaR 2022 (RWY), as a weight where theirs is a probability of
being sampled. The mean over a batch is over its weights, as PyTorch's weighted cross-entropy has it.
"""

from typing import Any

from torch import Tensor

from ..training.losses import cross_entropy
from . import BaseAlgorithm, Batch, StepState
from ._rows import compute_log_frequencies, compute_selected_mean

KIND = "domain"
CITATION = (
    "Idrissi, Arjovsky, Pezeshki and Lopez-Paz, Simple data balancing achieves competitive worst-group-accuracy, "
    "CLeaR 2022 (arXiv:2110.14503)"
)
SETTINGS: dict[str, Any] = {}


class Algorithm(BaseAlgorithm):
    inverse: Tensor

    def set_up(self) -> None:
        frequencies = compute_log_frequencies(self.about).exp()
        inverse = frequencies.clamp(min=1e-300).reciprocal().where(frequencies > 0, 0.0)
        self.register_buffer("inverse", inverse)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        errors = cross_entropy(network(*batch.inputs), batch.target)
        return compute_selected_mean(errors, self.inverse.gather(1, batch.target), batch)
