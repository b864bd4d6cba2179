"""Drawing rows: counters for the draws, and the first different ones, so that no input stands twice in a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition

T = TypeVar("T")


def make_counters(count: int) -> NDArray[np.uint64]:
    """0, 1, 2 .. to draw by, shape (count,)."""
    return np.arange(count, dtype=np.uint64)


def count_candidates(count: int) -> int:
    """How many rows to draw where `count` different ones are wanted and repetitions are rare."""
    return count + count // 4 + 32


def take_distinct(items: Iterable[T], count: int, key: Callable[[T], str], where: str) -> list[T]:
    """The first `count` of `items` with different keys; `BadDefinition` where there are fewer."""
    distinct: dict[str, T] = {}
    for item in items:
        distinct.setdefault(key(item), item)
        if len(distinct) == count:
            return list(distinct.values())
    raise BadDefinition(f"{where}: only {len(distinct)} different rows were drawn, {count} are asked for")


def find_distinct_rows(rows: NDArray[np.uint8], count: int) -> NDArray[np.int64]:
    """The places of the first `count` different rows of `rows` (n, width), ascending; fewer where there are fewer."""
    # As texts of one width rows are compared at once; that comparison ignores zeros at the end, which confuses no two.
    _, first = np.unique(np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").ravel(), return_index=True)
    return np.sort(first)[:count]
