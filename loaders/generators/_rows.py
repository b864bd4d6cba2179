"""Helpers for generators: counters for draws, selection of distinct rows so that no input occurs twice in a source,
text columns, and tables from rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...core.draws import UNIT, draw_normal_units
from ...core.errors import BadDefinition
from ..readers._arrow_types import to_tensor_column

T = TypeVar("T")


def make_counters(count: int) -> NDArray[np.uint64]:
    """Return the counters 0, 1, 2 .. for draws, shape (count,)."""
    return np.arange(count, dtype=np.uint64)


def draw_normal(stream: str, *shape: int) -> NDArray[np.float64]:
    """Draw standard normal numbers (see `core/draws.py`) of a shape."""
    return (draw_normal_units(stream, math.prod(shape)) / UNIT).reshape(shape)


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


def format_grids(grids: NDArray[np.uint8], between: str, row_end: str) -> list[str]:
    """Format grids of ASCII characters (n, height, width): the characters of a row with `between` between them, and the
    rows with `row_end` between them."""
    return [row_end.join(between.join(line) for line in map(bytes.decode, map(bytes, grid))) for grid in grids]


def select_words(words: Sequence[str], which: NDArray[np.int64]) -> pa.Array:
    """Return a text column of `words[i]` for each i of `which`."""
    return pa.array(words, pa.string()).take(pa.array(which))


def join_columns(*columns: pa.Array) -> pa.Array:
    """Join the words of columns row by row, separated by spaces."""
    return pc.binary_join_element_wise(*columns, " ")


def make_numbered_words(prefix: str, count: int) -> list[str]:
    """Return `count` words: the prefix and 0, 1, 2 .."""
    return [f"{prefix}{number}" for number in range(count)]


def stack_blocks(blocks: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Make a table of at least one block of rows: the values of each column by its name, as an array (with several
    axes: a tensor a row), or as the one text or number of all rows of the block."""
    counts = [max(len(values) for values in block.values() if isinstance(values, np.ndarray)) for block in blocks]
    columns: dict[str, Any] = {}
    for name, first in blocks[0].items():
        values = [block[name] for block in blocks]
        if not isinstance(first, np.ndarray):
            columns[name] = pa.array(values).take(pa.array(np.repeat(np.arange(len(blocks)), counts)))
        else:
            every = np.concatenate(values)
            columns[name] = to_tensor_column(every) if every.ndim > 1 else every
    return pa.table(columns)


def make_table(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Make a table from at least one row; `names` are the names of the columns."""
    columns = (list(column) for column in zip(*rows, strict=True))
    return pa.table(dict(zip(names, columns, strict=True)))
