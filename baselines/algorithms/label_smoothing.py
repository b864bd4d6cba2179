"""Label smoothing: cross-entropy to (1 - e) one-hot + e / C, with e > 0 or, for wrong labels, e < 0.

    (1 - e) CE(p, y) + e / C sum_j CE(p, j)

Positive: Szegedy et al., CVPR 2016 (arXiv:1512.00567), section 7. Negative: Wei et al., ICML 2022, who warm up
with plain cross-entropy: at a negative rate the loss has no lower bound, and a network that knows nothing yet falls.
`start` is that warm-up's share of the steps.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import label_smoothing_loss
from . import EmpiricalRisk, StepState

KIND = "corrupted-label"
CITATION = (
    "Wei, Liu, Liu, Niu, Sugiyama and Liu, To smooth or not? When label smoothing meets noisy labels, ICML 2022 "
    "(arXiv:2106.04149)"
)
TASKS = ("classification", "sequence")
SETTINGS: dict[str, Any] = {"rate": 0.1, "start": 0.0}
"""rate: e, at most 1; negative rates move away from the other classes. start: the share of the steps before which the
labels are not smoothed."""
SEARCH: dict[str, Any] = {
    "rate": ["choice", 0.8, 0.6, 0.4, 0.2, -0.2, -0.4, -0.6, -0.8, -1.0, -2.0, -4.0, -6.0, -8.0],
    "start": ["choice", 0.0, 0.5],
}


class Algorithm(EmpiricalRisk):
    def errors(self, logits: Tensor, target: Tensor, clock: StepState) -> Tensor:
        begun = clock.step >= self.hyperparameters["start"] * clock.steps
        rate = torch.where(begun, self.hyperparameters["rate"], 0.0)
        return label_smoothing_loss(logits, target, rate)
