"""Work on pieces of arrays by the threads of this process: for functions of Arrow or NumPy, which let other threads
run, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .engines import count_usable_cores

J = TypeVar("J")
R = TypeVar("R")


def map_in_threads(function: Callable[[J], R], pieces: Iterable[J]) -> list[R]:
    """`function` of each piece, in their order; as many at a time as there are cores."""
    with ThreadPoolExecutor(count_usable_cores()) as pool:
        return list(pool.map(function, pieces))
