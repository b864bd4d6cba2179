"""How many replicas to train at once: stacked where the cost of a step is overhead, one after the other where the core
is busy with arithmetic anyway, halved where memory does not suffice."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from ...core.errors import ModelError
from ...core.progress import log_message
from ..replicas.stacked import count_parameters
from .trainer import Training

T = TypeVar("T")

_WARM, _TIMED = 2, 4
"""Steps that are not timed, and steps that are."""

_MEMORY = ("not enough memory", "can't allocate memory", "out of memory", "alloc_failed")


def measure_step_seconds(training: Training) -> float:
    """The least time that one of a few steps takes."""
    least = float("inf")
    for step in range(_WARM + _TIMED):
        start = time.perf_counter()
        training.step()
        if training.stack.keys.is_cuda:
            torch.cuda.synchronize()
        if step >= _WARM:
            least = min(least, time.perf_counter() - start)
    return least


BUSY = 2e8
"""Multiplications in a replica's step from which on a CPU core is busy with arithmetic, and stacking gains nothing.
Eight perceptrons or Transformers stacked were 1.1 to 4.5 times as fast as one by one below a tenth of it, and 1.0 to
2.1 times from there on."""


def choose_stack_size(make: Callable[[Sequence[T]], Training], items: Sequence[T]) -> int:
    """How many of `items` to train at once. `make(some)` gives a training that may be spoiled.

    On a CPU by the size of a step, so that the same command stacks the same replicas each time; on any other device by
    trial."""
    if len(items) == 1:
        return 1
    alone = make(items[:1])
    if not alone.stack.keys.is_cpu:
        return measure_stack_size(lambda some: make(items[:some]), len(items))
    places = alone.sampler.drawn * (int(alone.data.lengths.max()) if alone.data.target.ndim == 3 else 1)
    return 1 if count_parameters(alone.stack.network) * places > BUSY else len(items)


def measure_stack_size(make: Callable[[int], Training], replicas: int) -> int:
    """The number of replicas to stack, by trial: of `replicas`, a quarter of them .. and 1, the one whose step takes
    the least time for each. `make(count)` gives a training of so many that may be spoiled."""
    best_count, least = 1, measure_step_seconds(make(1))
    count = replicas
    while count > 1:
        try:
            each = measure_step_seconds(make(count)) / count
        except (MemoryError, RuntimeError) as error:
            if not _lacks_memory(error):
                raise
        else:
            if each < least:
                best_count, least = count, each
        count //= 4
    return best_count


def run_in_stacks(items: Sequence[T], count: int, train: Callable[[Sequence[T]], None], halves: bool = True) -> None:
    """`train` on `items`, `count` at a time. If there is not enough memory, it is retried with half as many, down to
    one (unless `halves` is False); `ModelError` if that is not enough."""
    start = 0
    while start < len(items):
        some = items[start : start + count]
        try:
            train(some)
        except (MemoryError, RuntimeError) as error:
            if not _lacks_memory(error):
                raise
            if len(some) == 1 or not halves:
                each = "one replica" if len(some) == 1 else f"{len(some)} replicas at once"
                raise ModelError(
                    f"there is not enough memory to train {each}: lower batch_size (full batches: set chunk), "
                    "or the network's size"
                ) from error
            count = (len(some) + 1) // 2
            log_message(f"there is not enough memory for {len(some)} replicas at once: continuing with {count}")
        else:
            start += len(some)
            continue
        gc.collect()  # what failed may hold itself in a cycle


def _lacks_memory(error: Exception) -> bool:
    known = MemoryError, torch.OutOfMemoryError
    return isinstance(error, known) or any(text in str(error).lower() for text in _MEMORY)
