"""Rows that lie elsewhere, read where they lie: files by byte ranges, and the stores of rows in them.

A file (`File`) is a folder's, a web server's or the Hub's; a store (`Store`) finds a source's rows in shards or Parquet
files and reads some of them. Neither keeps a connection or a thread between calls, so both can be sent to a process.
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
    """The reader was closed while this was being read; nobody waits for it."""


class File(Protocol):
    """A file that is read by ranges of bytes."""

    @property
    def name(self) -> str:
        """Where it is, for messages: a path or an address."""
        ...

    @property
    def size(self) -> int:
        """Its length in bytes."""
        ...

    @property
    def identity(self) -> str | None:
        """What tells this content from any other that may lie at the place later; None where nothing does."""
        ...

    def read(self, start: int, stop: int, cancel: Event) -> bytes:
        """Bytes [start, stop), all of them. `Unavailable` where they cannot be had, `BadData` where the file is not
        the one that was opened; `Cancelled` where `cancel` was set meanwhile."""
        ...


class Store(Protocol):
    """Rows of a source, numbered from 0 in an order of the store's own."""

    least_block: int
    """Bytes worth reading at once: less costs as much."""

    def sizes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """About how many bytes of memory each row takes as it is read, shape (rows,)."""
        ...

    def occurrences(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of the source's rows of equal inputs each one is, counted from 0, shape (rows,)."""
        ...

    def describe_location(self, row: int) -> str:
        """Where a row lies, for messages: the file, and the offset or row in it."""
        ...

    def forget(self) -> None:
        """Let go of what is kept of the files: some of it was found to be wrong."""
        ...

    def read(self, rows: NDArray[np.int64], fields: Sequence[Field], cancel: Event) -> pa.Table:
        """Some rows' fields, in the order asked for, typed as the fields say; the label is the source's own."""
        ...
