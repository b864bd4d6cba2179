"""Forward correction: the predicted probabilities are multiplied by the transition matrix before the loss.

    -log sum_i p_i T_iy

Patrini et al., CVPR 2017, Theorem 2: its minimiser under wrong labels is that of cross-entropy under true ones. T is
estimated by anchors in a first stage (see `_transition`).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ._transition import LossCorrection

KIND = "corrupted-label"
CITATION = (
    "Patrini, Rozza, Menon, Nock and Qu, Making deep neural networks robust to label noise: a loss correction "
    "approach, CVPR 2017 (arXiv:1609.03683)"
)
TASKS = ("classification",)
TOUCHES = ("train",)
SETTINGS: dict[str, Any] = {"percentile": 97.0}
"""percentile: of each class's probabilities over the rows, at which its anchor is; 97 in the paper with ten classes and
100, the largest, with a hundred."""
SEARCH: dict[str, Any] = {"percentile": ["choice", 90.0, 97.0, 100.0]}


class Algorithm(LossCorrection):
    def corrected(self, logits: Tensor, target: Tensor) -> Tensor:
        columns = self.transition.transpose(1, 2)
        ways = columns.gather(1, target[..., None].expand(-1, -1, logits.shape[-1]))
        return -(logits.log_softmax(-1) + ways.log()).logsumexp(-1)
