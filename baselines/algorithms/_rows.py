"""Training rows that an algorithm draws by itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.hyperparameters import Hyperparameters
from ..replicas.rng import draw_uniform
from ..training.algorithm import AlgorithmContext, StepState
from ..training.optimiser_step import OptimiserStep
from ..training.sampler import Batch, select_batch
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
    """Empirical risk on rows drawn by weights that change along training, with replacement."""

    additive = False  # a chunk of a batch would be replaced by rows of its own
    draw_name: str
    """Names the draw of rows."""

    def __init__(self, hyperparameters: Hyperparameters, about: AlgorithmContext) -> None:
        """`ModelError` for full batches."""
        super().__init__(hyperparameters, about)
        if not hyperparameters["batch_size"]:
            raise ModelError(f"{self.draw_name} chooses the rows of batches: set batch_size above 0")

    @abstractmethod
    def weigh_rows(self, clock: StepState) -> Tensor:
        """The weight of each training row in this step, (K, N) float64."""

    def choose_rows(self, batch: Batch, clock: StepState) -> Batch:
        """The rows to be trained on in place of those drawn."""
        rows = sample_by_weight(self.weigh_rows(clock), clock.draw(self.draw_name), batch.rows.shape[1])
        return select_batch(self.about.data, rows)

    def update(
        self,
        network: Any,
        batches: Callable[[], Iterable[tuple[Batch, Tensor | None]]],
        clock: StepState,
        optimiser_steps: Mapping[str, OptimiserStep],
    ) -> Tensor:
        return super().update(
            network,
            lambda: ((self.choose_rows(batch, clock), share) for batch, share in batches()),
            clock,
            optimiser_steps,
        )
