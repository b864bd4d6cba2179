"""How many replicas to train at once: stacked if the cost of a step is overhead, one after the other if the CPU core is
busy with arithmetic anyway, halved if memory does not suffice."""

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
"""Steps that are not timed, and steps that are timed."""

_MEMORY = ("not enough memory", "can't allocate memory", "out of memory", "alloc_failed")


def time_steps(training: Training, count: int) -> list[float]:
    """The seconds of each of a few steps."""
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        training.step()
        if training.stack.keys.is_cuda:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return seconds


def measure_step_seconds(training: Training) -> float:
    """The minimum time of one of a few steps."""
    return min(time_steps(training, _WARM + _TIMED)[_WARM:])


BUSY = 2e8
"""Multiplications in a replica's step above which a CPU core is busy with arithmetic, so that stacking gains nothing.
Eight perceptrons or Transformers stacked were 1.1 to 4.5 times as fast as one by one below a tenth of it, and 1.0 to
2.1 times above it."""


def choose_stack_size(make: Callable[[Sequence[T]], Training], items: Sequence[T]) -> int:
    """Choose how many of `items` to train at once. `make(some)` returns a training that may be modified.

    On a CPU by the size of a step, so that the same command always stacks the same replicas; on any other device by
    measurement."""
    if len(items) == 1:
        return 1
    alone = make(items[:1])
    if not alone.stack.keys.is_cpu:
        return measure_stack_size(lambda some: make(items[:some]), len(items))
    places = alone.sampler.drawn * (int(alone.data.lengths.max()) if alone.data.target.ndim == 3 else 1)
    return 1 if count_parameters(alone.stack.network) * places > BUSY else len(items)


def measure_stack_size(make: Callable[[int], Training], replicas: int) -> int:
    """Measure how many replicas to stack: of `replicas`, a quarter of them .. and 1, the number with the least time per
    replica and step. `make(count)` returns a training of `count` replicas that may be modified."""
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
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # what only larger stacks took is for other processes on the GPU
    return best_count


def halve_stack(error: MemoryError | RuntimeError, count: int) -> int:
    """How many replicas to train at once after `count` raised `error`. Raises it again if it is no lack of memory, and
    `ModelError` for one replica."""
    if not _lacks_memory(error):
        raise error
    if count == 1:
        raise ModelError(
            "there is not enough memory to train one replica: lower batch_size (full batches: set chunk), "
            "or the network's size"
        ) from error
    half = (count + 1) // 2
    log_message(f"there is not enough memory for {count} replicas at once: continuing with {half}")
    return half


def _lacks_memory(error: Exception) -> bool:
    known = MemoryError, torch.OutOfMemoryError
    return isinstance(error, known) or any(text in str(error).lower() for text in _MEMORY)
