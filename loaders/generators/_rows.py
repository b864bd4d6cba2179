"""Helpers for generators: counters for draws, selection of distinct rows so that no input occurs twice in a source,
text columns, and tables from rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition

if TYPE_CHECKING:
    import pyarrow as pa

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


def select_words(words: Sequence[str], which: NDArray[np.int64]) -> pa.Array:
    """Return a text column of `words[i]` for each i of `which`."""
    import pyarrow as pa

    return pa.array(words, pa.string()).take(pa.array(which))


def join_columns(*columns: pa.Array) -> pa.Array:
    """Join the words of columns row by row, separated by spaces."""
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*columns, " ")


def make_numbered_words(prefix: str, count: int) -> list[str]:
    """Return `count` words: the prefix and 0, 1, 2 .."""
    return [f"{prefix}{number}" for number in range(count)]


def make_table(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Make a table from at least one row; `names` are the names of the columns."""
    import pyarrow as pa

    columns = (list(column) for column in zip(*rows, strict=True))
    return pa.table(dict(zip(names, columns, strict=True)))
