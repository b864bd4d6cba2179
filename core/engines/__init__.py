"""Engines: where shards are worked on; one file each, with `mapped(function, items)`.

`function` is importable by name, items and results are picklable. Yields the results in the order of the items, and
holds only a few that nobody took yet. Results do not depend on the engine.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from ..plugins import module

T = TypeVar("T")
R = TypeVar("R")
H = TypeVar("H")

Mapped = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]


def engine(name: str) -> Mapped:
    """The `mapped` of the engine called `name`: local, processes or ray."""
    mapped: Mapped = module("core/engines", name, "engine").mapped
    return mapped


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(start: Callable[[T], H], result: Callable[[H], R], items: Sequence[T], ahead: int) -> Iterator[R]:
    """The results of `items`, in their order, of which at most `ahead` are started and not yet taken."""
    started: deque[H] = deque()
    for item in items:
        if len(started) == ahead:
            yield result(started.popleft())
        started.append(start(item))
    while started:
        yield result(started.popleft())
