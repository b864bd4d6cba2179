"""Helpers for tables: vectorised text columns, and tables from rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


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
