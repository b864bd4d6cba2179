"""Empirical risk minimisation: the weighted mean loss over the training rows.

The squared loss on one-hot targets is what the literature on modular arithmetic trains with (Doshi et al., ICLR 2024,
arXiv:2310.13061). Of numbers the loss is their squared error, whatever is set.
"""

from typing import Any

from torch import Tensor

from ...core.errors import ModelError
from ..training.losses import label_smoothing_loss, squared_error
from . import EmpiricalRisk, StepState

KIND = "any"
CITATION = "Vapnik, Statistical Learning Theory, 1998"
TASKS = ("classification", "sequence", "regression")
SETTINGS: dict[str, Any] = {"loss": "cross-entropy", "label_smoothing": 0.0}
"""Of classes and texts. loss: `cross-entropy`, or `squared` (mean over rows and classes of the squared error to
the one-hot label)."""
LIMITS = {"loss": ("cross-entropy", "squared")}


class Algorithm(EmpiricalRisk):
    soft_targets = True

    def set_up(self) -> None:
        # Outputs fitted to one-hot targets are not logits.
        self.gives_logits = self.hyperparameters["loss"] == "cross-entropy"
        self.smooths = any(self.hyperparameters.exact("label_smoothing"))
        if self.about.task == "regression" and (self.smooths or not self.gives_logits):
            raise ModelError("settings loss and label_smoothing: regression uses the squared error: leave both out")

    def errors(self, logits: Tensor, target: Tensor, clock: StepState) -> Tensor:
        if not self.gives_logits:
            return squared_error(logits, target)
        if self.smooths:
            return label_smoothing_loss(logits, target, self.hyperparameters["label_smoothing"])
        return super().errors(logits, target, clock)
