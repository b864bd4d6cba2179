"""How a step is computed, with the same result: in chunks, with recomputed activations, in a lower precision.

The setting `chunk` is the most rows that are computed at once; their gradients are summed, so that the step is that of
the whole batch. The sampler reads a full batch in chunks; a batch of `batch_size` rows is drawn whole and divided here.

With the setting `recompute`, only the inputs of each block of a network are stored, and its activations computed again
in the backward pass (Chen, Xu, Zhang and Guestrin, Training Deep Nets with Sublinear Memory Cost, 2016,
arXiv:1604.06174); a block is an element of its outermost lists of modules: a layer of a Transformer, a stage of a
residual network. Losses and gradients are the same: the same noise is drawn again, and running moments are updated
once.

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
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from ...core.errors import ModelError
from ..encoding.encoding import PAD
from ..layers.attention import Attention
from ..layers.convolution import Conv2d
from ..layers.recurrent import Recurrent
from ..ranges import explain_out_of_range
from ..replicas.rng import Rng
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


def list_blocks(network: nn.Module) -> list[nn.Module]:
    """The elements of a network's outermost lists of two modules or more."""
    network_blocks: list[nn.Module] = []
    for child in network.children():
        if isinstance(child, nn.ModuleList | nn.Sequential) and len(child) > 1:
            network_blocks += [layer for layer in child if next(layer.parameters(), None) is not None]
        else:
            network_blocks += list_blocks(child)
    return network_blocks


@contextmanager
def recompute_activations(network: nn.Module, rng: Rng) -> Iterator[None]:
    """The blocks of a network store no activations while the context lasts, which must include forward and backward
    pass. `ModelError` if there are no blocks."""
    network_blocks = list_blocks(network)
    if not network_blocks:
        raise ModelError("setting recompute: this network has no list of layers: leave it at false")
    for block in network_blocks:
        vars(block)["forward"] = _RecomputedForward(block, rng)
    try:
        yield
    finally:
        for block in network_blocks:
            del vars(block)["forward"]


class _RecomputedForward:
    """A block's forward pass with recomputed activations."""

    def __init__(self, block: nn.Module, rng: Rng) -> None:
        self.block, self.rng, self.inside = block, rng, False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        block, rng = self.block, self.rng
        if self.inside or not torch.is_grad_enabled():
            return type(block).forward(block, *args, **kwargs)
        # The block's current tensors: one replica's slices, if it is called for each.
        parameters, buffers = dict(block.named_parameters()), dict(block.named_buffers())
        began, again = rng.mark(), False

        def forward(*given: Any) -> Any:
            nonlocal again
            first, again, self.inside = not again, True, True
            moments = buffers if first else {name: value.clone() for name, value in buffers.items()}
            try:
                with nullcontext() if first else rng.replayed(began):
                    return functional_call(block, parameters | moments, given, kwargs)
            finally:
                self.inside = False

        return checkpoint(forward, *args, use_reentrant=False)


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
