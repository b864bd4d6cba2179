"""Read rows of remote files without downloading them: files by byte ranges, and stores of the rows in them.

A file (`File`) is in a folder, on a web server or on the Hub; a store (`Store`) finds a source's rows in shards or
Parquet files and reads them. Neither keeps a connection or a thread between calls, so both can be pickled.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

    from ...splits.schema import Field


class Cancelled(Exception):
    """The reader was closed during a read, whose result is not needed."""


class File(Protocol):
    """A file that is read by byte ranges."""

    @property
    def name(self) -> str:
        """Its path or address, for messages."""
        ...

    @property
    def size(self) -> int:
        """Its size in bytes."""
        ...

    @property
    def identity(self) -> str | None:
        """Identifies the content among later contents of the same address; None if that is not possible."""
        ...

    def read(self, start: int, stop: int, cancel: Event) -> bytes:
        """Return all bytes of [start, stop). Raises `Unavailable` if they are not available, `BadData` if the file has
        changed since it was opened, `Cancelled` if `cancel` was set meanwhile."""
        ...


class Store(Protocol):
    """Rows of a source, numbered from 0 in the store's order."""

    least_block: int
    """The minimum efficient size of a read, in bytes."""

    def sizes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the approximate memory in bytes for reading each row, shape (rows,)."""
        ...

    def occurrences(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the occurrence number of each row among the source's rows with equal inputs, from 0, shape (rows,)."""
        ...

    def describe_location(self, row: int) -> str:
        """Return a row's location for messages: the file, and the offset or row in it."""
        ...

    def forget(self) -> None:
        """Discard cached bytes of the files, after an error was found in them."""
        ...

    def read(self, rows: NDArray[np.int64], fields: Sequence[Field], cancel: Event) -> pa.Table:
        """Read fields of rows, in the given order and with the fields' types; the label is the source's own."""
        ...
