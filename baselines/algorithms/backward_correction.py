"""Backward correction: the loss is corrected with the inverse of the label-noise transition matrix.

    sum_j (T^-1)_yj CE(p, j)

Patrini et al., CVPR 2017, Theorem 1: its mean over wrong labels is cross-entropy on true ones. T is estimated by
anchors in a first stage, as by `forward_correction`. The inverse has negative entries, so the loss has no lower bound;
for stability the paper mixes T with the identity first (`identity`), and here the inverse is the pseudo-inverse: two
classes that share an anchor make a singular T.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import cross_entropy
from . import forward_correction
from ._rows import read_entries

KIND = "corrupted-label"
CITATION = (
    "Patrini, Rozza, Menon, Nock and Qu, Making deep neural networks robust to label noise: a loss correction "
    "approach, CVPR 2017 (arXiv:1609.03683)"
)
SETTINGS: dict[str, Any] = {"percentile": 97.0, "identity": 0.0}
"""percentile: of each class's probabilities over the rows, at which its anchor is; 97 in the paper with ten classes and
100, the largest, with a hundred. identity: its share in the matrix that is inverted."""
SEARCH: dict[str, Any] = {"percentile": ["choice", 90.0, 97.0, 100.0], "identity": ["uniform", 0.0, 0.5]}
LIMITS = {"percentile": "above 0 and at most 100"}


class Algorithm(forward_correction.Algorithm):
    def corrected(self, logits: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(logits, read_entries(self.inverse(), target))

    def inverse(self) -> Tensor:
        """T^-1 of each replica, (K, C, C)."""
        share = self.hyperparameters.on("identity", self.transition)
        same = torch.eye(self.transition.shape[-1], dtype=share.dtype, device=share.device)
        mixed = share * same + (1 - share) * self.transition
        inverse: Tensor = torch.linalg.pinv(mixed.double())
        return inverse.to(share.dtype)
