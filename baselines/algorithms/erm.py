"""Empirical risk minimisation: the weighted mean loss over the training rows.

The squared loss on one-hot targets is what the literature on modular arithmetic trains with (Doshi et al., ICLR 2024,
arXiv:2310.13061). Of numbers the loss is their squared error, whatever is set.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ...core.errors import ModelError
from ..training.losses import average_over_batch, compute_task_loss, label_smoothing_loss, squared_error
from . import BaseAlgorithm, Batch, StepState

KIND = "any"
CITATION = "Vapnik, Statistical Learning Theory, 1998"
TASKS = ("classification", "sequence", "regression")
TOUCHES = ("train",)
SETTINGS: dict[str, Any] = {"loss": "cross-entropy", "label_smoothing": 0.0}
"""Of classes and texts. loss: `cross-entropy`, or `squared` (mean over rows and classes of the squared error to
the one-hot label)."""
SEARCH: dict[str, Any] = {}


class Algorithm(BaseAlgorithm):
    additive = True
    soft_targets = True

    def set_up(self) -> None:
        self.gives_logits = (
            self.hyperparameters["loss"] == "cross-entropy"
        )  # outputs fitted to one-hot targets are not logits
        self.smooths = any(self.hyperparameters.exact("label_smoothing"))
        if self.about.task == "regression" and (self.smooths or not self.gives_logits):
            raise ModelError("settings loss and label_smoothing: regression uses the squared error: leave both out")

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        return average_over_batch(self.errors(network(*batch.inputs), batch.target), batch)

    def errors(self, logits: Tensor, target: Tensor) -> Tensor:
        """The loss of each target, (K, n) or (K, n, T)."""
        match self.hyperparameters["loss"]:
            case "cross-entropy":
                if self.smooths:
                    return label_smoothing_loss(logits, target, self.hyperparameters["label_smoothing"])
                return compute_task_loss(logits, target)
            case "squared":
                return squared_error(logits, target)
            case other:
                raise ModelError(f"setting loss = {other!r}: use cross-entropy or squared")
