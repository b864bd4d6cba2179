"""How many threads a training takes on a machine that other processes use too. Its threads wait for each other at every
operation: where they have fewer free cores than there are of them, one thread is many times faster than two."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .engines import THREADS, count_usable_cores
from .progress import log_message

_SAMPLE = 0.25
"""Seconds for which the use of the cores is observed."""


def measure_busy_cores() -> float:
    """The mean number of this process's cores that are in use, observed for a moment in which it waits; 0 where the
    system does not say."""
    try:
        before = _read_processor_times()
        time.sleep(_SAMPLE)
        after = _read_processor_times()
    except OSError:
        return 0.0
    busy, total = after[0] - before[0], after[1] - before[1]
    return count_usable_cores() * busy / total if total else 0.0


def _read_processor_times() -> tuple[int, int]:
    """The busy and all time of all processors, in ticks (proc(5), /proc/stat)."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)  # less idle and iowait


def choose_threads(busy: float) -> int:
    """The number of threads for the cores that are free, at least one; 0, the libraries' own choice, if all are free or
    the environment sets the number."""
    if any(os.environ.get(name) for name in THREADS):
        return 0
    cores = count_usable_cores()
    free = max(1, round(cores - busy))
    return free if free < cores else 0


def describe_busy_cores(busy: float) -> str:
    """The use of the cores, and with how many threads a training then begins; empty if all cores are free."""
    threads = choose_threads(busy)
    if not threads:
        return ""
    return (
        f"{busy:.1f} of {count_usable_cores()} cores are busy: training takes {threads} thread{'s' * (threads > 1)} "
        "(OMP_NUM_THREADS sets the number)"
    )


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """Let torch use so many threads while the context lasts; 0: as many as before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(min(count or before, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def use_free_cores() -> Iterator[None]:
    """Let torch use the cores that are free now while the context lasts, and say so if they are not all."""
    busy = measure_busy_cores()
    if text := describe_busy_cores(busy):
        log_message(text)
    with limit_threads(choose_threads(busy)):
        yield
