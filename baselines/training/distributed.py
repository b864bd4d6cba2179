"""Data-parallel training of one model by the processes of a `torchrun`: each computes its share of every step's rows.

All processes hold the same replicas. Each computes the loss on its own rows, weighted by their share in the batch, and
the gradients are summed over the processes before a step, so that every process makes the step that one process alone
would make, up to the order of floating-point sums (Li et al., PyTorch Distributed, VLDB 2020, arXiv:2006.15704).
Dropout and the like draw other masks in each process.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from ...core.errors import ModelError
from ...core.world import World
from ..replicas.rng import derive_stream
from .algorithm import Algorithm
from .optimiser_step import OptimiserStep
from .sampler import Batch, Data
from .step_computation import count_targets, slice_batch

T = TypeVar("T")


@contextmanager
def join_processes(world: World, device: str) -> Iterator[None]:
    """Let the processes exchange tensors while the context lasts: over gloo on a CPU, over nccl on GPUs, one GPU each
    (`cuda` then means the process's own)."""
    if world.size == 1:
        yield
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def broadcast_from_first(value: T, world: World) -> T:
    """The first process's value, in every process."""
    if world.size == 1:
        return value
    values = [value]
    dist.broadcast_object_list(values)
    return values[0]


def derive_noise_keys(keys: Tensor, world: World) -> Tensor:
    """The noise keys of the layers in this process: the rows of each process have masks of their own."""
    return keys if world.rank == 0 else derive_stream(keys, "rank", world.rank)


def refuse_unshared(algorithm: Algorithm, data: Data) -> None:
    """`ModelError` if the loss of a batch is not the mean of its rows' losses, or if the algorithm records something of
    every training row, of which each process would see only a share."""
    name = type(algorithm).__module__.rpartition(".")[2]
    advice = "train it in one process, without torchrun"
    if not algorithm.is_row_mean:
        raise ModelError(
            f"the loss of the algorithm {name} is not a mean over rows, so processes cannot share the rows: {advice}"
        )
    remembered = dict(algorithm.named_buffers()) | dict(algorithm.named_parameters())
    if any(value.ndim > 1 and value.shape[1] == len(data) for value in remembered.values()):
        raise ModelError(
            f"the algorithm {name} stores values for each row, so processes cannot share the rows: {advice}"
        )


def share_batches(
    batches: Iterable[tuple[Batch, Tensor | None]], world: World
) -> Iterator[tuple[Batch, Tensor | None]]:
    """This process's rows of each batch, with their share (K,) in the whole."""
    for batch, share in batches:
        rows = batch.rows.shape[1]
        if rows < world.size:
            raise ModelError(f"{rows} rows cannot be divided among {world.size} processes: raise batch_size")
        # Neighbouring rows are often alike (of one environment, of one weight): each process gets some of all.
        own = slice_batch(batch, slice(world.rank, None, world.size))
        part = count_targets(own) / count_targets(batch)
        yield own, part if share is None else part * share


class SharedOptimiserStep(OptimiserStep):
    """An optimiser step along the gradients of all processes together."""

    def step(self, closure: Callable[[], Tensor]) -> Tensor:
        return super().step(lambda: self._sum_gradients(closure))

    def _sum_gradients(self, closure: Callable[[], Tensor]) -> Tensor:
        """Backpropagate the losses; sum them, (K,), and the gradients over the processes."""
        losses = closure()
        if losses.requires_grad:
            losses.sum().backward()  # type: ignore[no-untyped-call]
        there = [p.grad for p in self.parameters if p.grad is not None]
        flat = torch.cat([losses.detach(), *(gradient.reshape(-1) for gradient in there)])
        dist.all_reduce(flat)
        summed: tuple[Tensor, ...] = torch.split(flat, [len(losses), *(gradient.numel() for gradient in there)])
        for gradient, total in zip(there, summed[1:], strict=True):
            gradient.copy_(total.view_as(gradient))
        return summed[0]
