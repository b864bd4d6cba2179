"""Black-box shift estimation: label shift is estimated from predictions, and the network is trained again with class
weights.

The first part of training is plain ERM. With its predictions on validation rows V and shifted rows T,

    C_ij = mean over V of 1[prediction = i, label = j]      mu_i = mean over T of 1[prediction = i]
    w = (C^T C + r I)^-1 C^T mu,  r = 1 / min(|V|, |T|),    and classes that come out negative have weight 0

and a fresh network minimises the mean of w_y CE (Lipton, Wang and Smola, ICML 2018, algorithm 1), whose assumption is
that the classes' frequencies shift and nothing else. T are the inputs of the shifted test rows, without labels. The
ridge r is the released code's, whose estimate does not clip weights below 0.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..training.losses import average_over_batch, cross_entropy
from . import Batch, Data, StepState
from ._plain import TwoStages

KIND = "domain"
CITATION = (
    "Lipton, Wang and Smola, Detecting and correcting for label shift with black box predictors, ICML 2018 "
    "(arXiv:1802.03916)"
)
TOUCHES = ("train", "id_val", "unlabelled")
SETTINGS: dict[str, Any] = {"first_percent": 50}
"""first_percent: of the steps, in which the network is trained whose errors are counted."""
SEARCH: dict[str, Any] = {"first_percent": ["choice", 25, 50]}


def estimate_class_ratios(predicted: Tensor, label: Tensor, shifted: Tensor, classes: int) -> Tensor:
    """w, (K, classes), which may be negative, of predictions on validation rows (K, n) with labels (n,) and on shifted
    rows (K, m)."""
    confusion = F.one_hot(predicted, classes).double().transpose(1, 2) @ F.one_hot(label, classes).double() / len(label)
    marginal = F.one_hot(shifted, classes).double().mean(1)
    ridge = torch.eye(classes, dtype=torch.float64, device=label.device) / min(len(label), shifted.shape[1])
    turned = confusion.transpose(1, 2)
    return torch.linalg.solve(turned @ confusion + ridge, turned @ marginal[..., None])[..., 0]


class Algorithm(TwoStages):
    class_weight: Tensor

    def set_up(self) -> None:
        self.validation_rows = self.about.data.held_out["id_val"]
        self.register_buffer("class_weight", torch.ones(self.about.replicas, self.about.outputs))

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        assert data.unlabelled is not None
        predicted, shifted = (answer(*inputs).argmax(-1) for inputs in (self.validation_rows.inputs, data.unlabelled))
        class_ratios = estimate_class_ratios(
            predicted, self.validation_rows.target[0], shifted, self.about.outputs
        ).clamp(min=0)
        self.class_weight.copy_(class_ratios)
        return data, True

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        weight = self.class_weight.gather(1, batch.target)
        return average_over_batch(weight * cross_entropy(network(*batch.inputs), batch.target), batch)
