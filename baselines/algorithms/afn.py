"""Adaptive feature norm: the feature norms of labelled and of shifted rows are increased step by step.

    CE + penalty x [ mean over x in S of (|z(x)| - r(x))^2 + the same over T ],    r(x) = |z(x)| + step, held fixed

S are a batch's labelled rows, T as many inputs of the shifted test rows, without labels. That is the stepwise form
(SAFN); with `radius` above 0 it is the hard one (HAFN): (mean over S of |z| - radius)^2, and the same over T. Xu, Li,
Yang and Lin, ICCV 2019. The released code scales features under dropout so that their norm is preserved; here the norm
is that of the head's inputs.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, StepState
from ._shifted import encode_both_domains

KIND = "domain"
CITATION = (
    "Xu, Li, Yang and Lin, Larger norm more transferable: an adaptive feature norm approach for unsupervised domain "
    "adaptation, ICCV 2019 (arXiv:1811.07456)"
)
TOUCHES = ("train", "unlabelled")
SETTINGS: dict[str, Any] = {"penalty": 0.05, "step": 1.0, "radius": 0.0}
"""penalty and step: the released code's on Office-31. radius: of the hard form, 25 there; 0 for the stepwise form."""
SEARCH: dict[str, Any] = {"penalty": ["log10", -3, 0]}


def compute_norm_loss(features: Tensor, step: Tensor, radius: Tensor) -> Tensor:
    """How far the norms of features (K, n, d) are from what they should become, (K,). step, radius: (K,)."""
    norms = features.norm(dim=-1)
    soft = (norms - (norms.detach() + step[:, None])).square().mean(1)
    return torch.where(radius > 0, (norms.mean(1) - radius).square(), soft)


class Algorithm(BaseAlgorithm):
    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        sides = encode_both_domains(network, batch)
        risk = average_over_batch(cross_entropy(network.head(sides[0]), batch.target), batch)
        step, radius = self.hyperparameters["step"], self.hyperparameters["radius"]
        return risk + self.hyperparameters["penalty"] * sum(compute_norm_loss(side, step, radius) for side in sides)
