"""Gradient accumulation: a batch is computed in chunks, and the step is that of the whole batch.

The setting `chunk` is the most rows that are computed at once. The sampler reads a full batch in chunks; a batch of
`batch_size` rows is drawn whole and divided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..encoding.encoding import PAD
from .algorithm import Algorithm
from .sampler import Batch


def slice_batch(batch: Batch, which: slice) -> Batch:
    """Some rows of a batch, of every replica; without the inputs of shifted rows."""
    return replace(
        batch,
        inputs=tuple(x[:, which] for x in batch.inputs),
        target=batch.target[:, which],
        rows=batch.rows[:, which],
        weight=None if batch.weight is None else batch.weight[:, which],
        group=None if batch.group is None else batch.group[:, which],
    )


def count_targets(batch: Batch) -> Tensor:
    """The number of targets in a mean over the batch, weighted, (K,) float64."""
    weight = torch.ones_like(batch.rows, dtype=torch.float64) if batch.weight is None else batch.weight.double()
    if batch.target.ndim == 3 and not batch.target.is_floating_point():
        weight = weight * (batch.target != PAD).sum(-1)
    return weight.sum(1)


def split_into_chunks(
    batches: Iterable[tuple[Batch, Tensor | None]], most: int
) -> Iterator[tuple[Batch, Tensor | None]]:
    """Divide batches into chunks of at most `most` rows, each with its share (K,) of the whole; 0: do not divide."""
    for batch, share in batches:
        rows = batch.rows.shape[1]
        if not most or rows <= most:
            yield batch, share
            continue
        total = count_targets(batch)
        for start in range(0, rows, most):
            some = slice_batch(batch, slice(start, start + most))
            part = count_targets(some) / total
            yield some, part if share is None else part * share


def check_chunk(algorithm: Algorithm) -> None:
    """`ModelError` if an algorithm's loss of a batch is not the mean of its rows', so that chunks do not sum to it."""
    chunk, size = algorithm.hyperparameters["chunk"], algorithm.hyperparameters["batch_size"]
    if not chunk:
        return
    if not size and not algorithm.additive:
        raise ModelError(
            f"setting chunk = {chunk}: this algorithm's loss of a full batch is not a mean over rows, so it cannot be "
            "computed in chunks: leave chunk at 0, or set batch_size"
        )
    if size > chunk and not algorithm.is_row_mean:
        raise ModelError(
            f"setting chunk = {chunk}: this algorithm's loss of a batch is not a mean over rows, so it cannot be "
            "computed in chunks: leave chunk at 0"
        )
