"""LDAM: larger margins for rarer classes, and class weights late in training (deferred reweighting).

    CE(s (c - m_y 1_y), y),  c the cosines of features and the head's weights,  m_j = max_margin (min_k n_k / n_j)^(1/4)

Cao, Wei, Gaidon, Arechiga and Ma, NeurIPS 2019, equations 11 to 13; n_j is the weight of the training rows labelled j.
From `defer_percent` of the steps on, rows weigh (1 - b) / (1 - b^n_y), so scaled that the classes' weights sum to their
number, and a batch is averaged by them (Algorithm 1, with the effective numbers of Cui et al., CVPR 2019; b = 0.9999).
Logits are s c, as in the released code's normalised layer: the head's bias is unused. `defer_percent` of 100 is LDAM
alone. In evaluation margins are left out. The paper's rate falls at the step of the deferral; here it follows the
recipe.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, StepState
from ._head import read_head_shape
from ._rows import compute_log_frequencies, compute_selected_mean

KIND = "domain"
CITATION = (
    "Cao, Wei, Gaidon, Arechiga and Ma, Learning imbalanced datasets with label-distribution-aware margin loss, "
    "NeurIPS 2019 (arXiv:1906.07413)"
)
SETTINGS: dict[str, Any] = {"max_margin": 0.5, "scale": 30.0, "defer_percent": 80, "effective": 0.9999}
"""max_margin: of the rarest class. scale: s. defer_percent: of the steps, before rows weigh (160 of 200 epochs there).
effective: b."""
SEARCH: dict[str, Any] = {"max_margin": ["choice", 0.3, 0.5, 0.8], "defer_percent": ["choice", 60, 80, 100]}
LIMITS = {"effective": "at least 0 and below 1", "max_margin": "at least 0"}


class Algorithm(BaseAlgorithm):
    margins: Tensor
    """m, (K, classes); 0 of a class without rows."""
    weights: Tensor
    """Of the classes, late in training, (K, classes); 0 of a class without rows."""

    def set_up(self) -> None:
        data = self.about.data
        total = data.weight.double().sum(1, keepdim=True)
        counts = compute_log_frequencies(self.about).exp() * total
        there = counts > 0
        rarest = counts.where(there, torch.inf).min(1, keepdim=True)[0]
        rates = {name: self.hyperparameters.on(name, counts).double() for name in ("max_margin", "effective")}
        margins = rates["max_margin"] * (rarest / counts.clamp(min=1e-300)) ** 0.25
        self.register_buffer("margins", margins.where(there, 0.0))
        inverse = ((1 - rates["effective"]) / (1 - rates["effective"] ** counts).clamp(min=1e-300)).where(there, 0.0)
        self.register_buffer("weights", inverse / inverse.sum(1, keepdim=True) * self.about.outputs)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        cosines = compute_cosines(network, *batch.inputs)
        own = F.one_hot(batch.target, cosines.shape[-1]).to(cosines.dtype)
        moved = cosines - own * self.margins[:, None].to(cosines.dtype)
        errors = cross_entropy(self.hyperparameters.on("scale", moved) * moved, batch.target)
        if 100 * clock.step < self.hyperparameters["defer_percent"] * clock.steps:
            return average_over_batch(errors, batch)
        return compute_selected_mean(errors, self.weights.gather(1, batch.target), batch)

    def logits(self, network: Any, *inputs: Tensor) -> Tensor:
        cosines = compute_cosines(network, *inputs)
        return self.hyperparameters.on("scale", cosines) * cosines


def compute_cosines(network: Any, *inputs: Tensor) -> Tensor:
    """Of the features of rows and the weights of the network's linear head, (K, n, classes)."""
    read_head_shape(network)
    z = F.normalize(network.encode(network.embed(*inputs)), dim=-1)
    return torch.bmm(z, F.normalize(network.head.weight, dim=-1).transpose(1, 2))
