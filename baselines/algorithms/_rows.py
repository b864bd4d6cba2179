"""Training rows: drawn by an algorithm, selected by their losses, remembered, and how frequent their classes are.

A memory of each training row is a table (K, N, ..) that is a saved buffer."""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.rng import draw_uniform
from . import AlgorithmContext, Batch, Batches, EmpiricalRisk, OptimiserSteps, StepState


def sample_by_weight(weight: Tensor, keys: Tensor, count: int, share: Tensor | None = None) -> Tensor:
    """Places (K, count) drawn with replacement, each row by its weight (R, N). share: (K,), draw among the first rows
    that have this share of all weight; the row in which it ends has the remaining part of its weight."""
    ends = weight.double().cumsum(1)
    reach = ends[:, -1:] if share is None else ends[:, -1:] * share.double()[:, None]
    where = draw_uniform(keys, (count,), torch.float64) * reach
    indices = torch.searchsorted(ends.expand(len(where), -1).contiguous(), where, right=True)
    return indices.clamp_(max=weight.shape[1] - 1)


class ChosenRows(EmpiricalRisk):
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
        chosen = lambda: ((self.choose_rows(batch, clock), share) for batch, share in batches())  # noqa: E731
        return super().update(network, chosen, clock, optimiser_steps)


def read_entries(table: Tensor, rows: Tensor) -> Tensor:
    """The entries (K, n, ..) of the rows (K, n)."""
    return table.gather(1, _compute_indices(table, rows))


def write_entries(table: Tensor, rows: Tensor, values: Tensor) -> None:
    """Put values (K, n, ..) at the rows (K, n); of a row that is there twice, one of its values stays."""
    table.scatter_(1, _compute_indices(table, rows), values)


def add_entries(table: Tensor, rows: Tensor, values: Tensor) -> None:
    """Add values (K, n, ..) at the rows (K, n), all those of a row that is there twice."""
    table.scatter_add_(1, _compute_indices(table, rows), values)


def _compute_indices(table: Tensor, rows: Tensor) -> Tensor:
    return rows.view(*rows.shape, *[1] * (table.ndim - 2)).expand(*rows.shape, *table.shape[2:])


def take_rows(values: Tensor, rows: Tensor) -> Tensor:
    """As `read_entries`, whose gradient is scattered: here it is that of indexing."""
    return values[torch.arange(len(values), device=values.device)[:, None], rows]


def compute_selected_mean(errors: Tensor, share: Tensor, batch: Batch) -> Tensor:
    """The mean of row errors (K, n), each row counted by its share (K, n) and by its weight in the batch: (K,), 0 where
    nothing counts."""
    weight = share.to(errors.dtype)
    if batch.weight is not None:
        weight = weight * batch.weight.to(errors.dtype)
    total = weight.sum(1)
    return (errors * weight).sum(1) / torch.where(total > 0, total, 1.0)


def select_smallest(errors: Tensor, count: Tensor) -> Tensor:
    """Whether a row is among the `count` (K,) of smallest error (K, n); of equal errors the first are smaller."""
    rank = errors.argsort(dim=1, stable=True).argsort(dim=1)
    return rank < count[:, None]


def compute_log_frequencies(about: AlgorithmContext) -> Tensor:
    """The logarithm of each class's share of the training rows' weight, (K, C) float64; minus infinity of a class
    without rows."""
    target, weight = (x.expand(about.replicas, -1) for x in (about.data.target, about.data.weight.double()))
    counts = weight.new_zeros(about.replicas, about.outputs).scatter_add_(1, target, weight)
    return (counts / counts.sum(1, keepdim=True)).log()
