"""Training rows that an algorithm draws by itself."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.rng import draw_uniform
from . import Batch, Batches, OptimiserSteps, StepState
from ._plain import Plain


def sample_by_weight(weight: Tensor, keys: Tensor, count: int, share: Tensor | None = None) -> Tensor:
    """Places (K, count) drawn with replacement, each row by its weight (R, N). share: (K,), draw among the first rows
    that have this share of all weight; the row in which it ends has the remaining part of its weight."""
    ends = weight.double().cumsum(1)
    reach = ends[:, -1:] if share is None else ends[:, -1:] * share.double()[:, None]
    where = draw_uniform(keys, (count,), torch.float64) * reach
    indices = torch.searchsorted(ends.expand(len(where), -1).contiguous(), where, right=True)
    return indices.clamp_(max=weight.shape[1] - 1)


class ChosenRows(Plain):
    """Empirical risk on rows that the algorithm chooses along training."""

    additive = False  # a chunk of a batch would be replaced by rows of its own

    def set_up(self) -> None:
        """`ModelError` for full batches."""
        if not self.hyperparameters["batch_size"]:
            raise ModelError(f"{self.about.algorithm} chooses the rows of batches: set batch_size above 0")

    @abstractmethod
    def choose_rows(self, batch: Batch, clock: StepState) -> Batch:
        """The rows to be trained on in place of those drawn."""

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        return super().update(
            network,
            lambda: ((self.choose_rows(batch, clock), share) for batch, share in batches()),
            clock,
            optimiser_steps,
        )
