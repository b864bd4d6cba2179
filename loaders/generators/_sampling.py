"""Drawing rows: counters for the draws, and selection of distinct rows, so that no input occurs twice in a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition

T = TypeVar("T")


def make_counters(count: int) -> NDArray[np.uint64]:
    """Return the counters 0, 1, 2 .. for draws, shape (count,)."""
    return np.arange(count, dtype=np.uint64)


def count_candidates(count: int) -> int:
    """Return how many rows to draw for `count` distinct ones, if repetitions are rare."""
    return count + count // 4 + 32


def take_distinct(items: Iterable[T], count: int, key: Callable[[T], str], where: str) -> list[T]:
    """Return the first `count` of `items` with distinct keys. Raises `BadDefinition` if there are fewer."""
    distinct: dict[str, T] = {}
    for item in items:
        distinct.setdefault(key(item), item)
        if len(distinct) == count:
            return list(distinct.values())
    raise BadDefinition(f"{where}: only {len(distinct)} different rows were drawn, but {count} are required")


def find_distinct_rows(rows: NDArray[np.uint8], count: int) -> NDArray[np.int64]:
    """Return the indices of the first `count` distinct rows of `rows` (n, width), ascending; fewer if there are
    fewer."""
    # Rows are compared as byte strings. This ignores trailing zeros, which is safe for strings of equal width.
    _, first = np.unique(np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").ravel(), return_index=True)
    return np.sort(first)[:count]
