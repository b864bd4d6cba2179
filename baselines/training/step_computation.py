"""How a step is computed, with the same result: in chunks, in a lower precision.

The setting `chunk` is the most rows that are computed at once; their gradients are summed, so that the step is that of
the whole batch. The sampler reads a full batch in chunks; a batch of `batch_size` rows is drawn whole and divided here.

Weights, optimisers and sums stay in float32. Under bfloat16, matrix products, convolutions and attention are autocast
(Micikevicius et al., Mixed Precision Training, ICLR 2018, arXiv:1710.03740; bfloat16 needs no scaling of the loss). The
setting `precision`:

    auto       bfloat16 on a GPU for networks of convolutions or attention; float32 for everything else
    float32    everywhere
    bfloat16   on a GPU; an error for networks with hand-written recurrences

Small networks that grok, and everything on a CPU, are trained in float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..encoding.encoding import PAD
from ..layers.attention import Attention
from ..layers.convolution import Conv2d
from ..layers.recurrent import Recurrent
from ..ranges import explain_out_of_range
from .algorithm import Algorithm
from .sampler import Batch

if TYPE_CHECKING:
    from .replica_stack import ReplicaStack


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


def compute_in(dtype: torch.dtype, device: str) -> AbstractContextManager[Any]:
    """Compute a step's products in this precision while the context lasts, on a type of device. Weights are cast at
    each use, since a step may change them in between."""
    return torch.autocast(device, dtype, cache_enabled=False) if dtype == torch.bfloat16 else nullcontext()


def choose_precision(stack: ReplicaStack) -> torch.dtype:
    """The precision of a step's products when a replica stack is trained. `ModelError` for a setting that is unknown or
    not possible here."""
    choice, device, own = stack.hyperparameters["precision"], stack.keys.device.type, stack.hyperparameters.dtype
    if problem := explain_out_of_range("precision", choice):
        raise ModelError(f"setting precision = {choice!r}: {problem}")
    parts = [*stack.network.modules()]
    recurrent = any(isinstance(part, Recurrent) for part in parts)
    if choice == "bfloat16" and (device != "cuda" or recurrent):
        why = "networks with recurrent layers are trained in float32" if recurrent else "it is for training on a GPU"
        raise ModelError(f"setting precision = 'bfloat16': {why}: leave it at auto")
    suits = not recurrent and device == "cuda" and any(isinstance(part, Attention | Conv2d) for part in parts)
    lower = choice == "bfloat16" or (choice == "auto" and suits and own == torch.float32)
    return torch.bfloat16 if lower else own
