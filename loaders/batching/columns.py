"""Read the columns of a part by position: gather rows from memory-mapped files into arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

Rows = NDArray[np.int64]

_NARROW = 16
"""Columns of at most this many bytes a row are gathered for many batches at once."""


@dataclass(frozen=True)
class FixedColumn:
    """Values of fixed width; the first axis is the row. `stored` has them at `places`, or in order if that is None.
    Values of `override` that are not masked replace them."""

    stored: NDArray[Any]
    places: Rows | None = None
    override: np.ma.MaskedArray[Any, Any] | None = None

    def take(self, rows: Rows | slice) -> NDArray[Any]:
        """Return the values of some rows, in new memory."""
        at = rows if self.places is None else self.places[rows]
        # Opening a split checks its places against the source.
        values: NDArray[Any] = (
            self.stored[at].copy() if isinstance(at, slice) else self.stored.take(at, axis=0, mode="clip")
        )
        if self.override is not None:
            overrides = self.override[rows]
            np.copyto(values, overrides.data, where=~np.ma.getmaskarray(overrides))
        return values

    def view(self) -> NDArray[Any]:
        """Return all values; read-only and not copied if they are in order in memory."""
        if self.places is not None or self.override is not None:
            return self.take(slice(None))
        view = self.stored[:]
        view.flags.writeable = False
        return view

    @property
    def width(self) -> int:
        """Bytes of a row."""
        return self.stored.dtype.itemsize * prod(self.stored.shape[1:])


@dataclass(frozen=True)
class TextColumn:
    """Values of variable length, as an Arrow array of text or bytes; `places` as in `FixedColumn`. `column[rows]`
    selects rows by indices, a mask or a slice, of which nothing is read yet; `numpy.asarray` reads them as objects."""

    stored: pa.Array
    places: Rows | None = None

    def __len__(self) -> int:
        return len(self.stored if self.places is None else self.places)

    def take(self, rows: Rows) -> pa.Array:
        return self.stored.take(rows if self.places is None else self.places[rows])

    def __getitem__(self, rows: NDArray[Any] | slice) -> TextColumn:
        return TextColumn(self.stored, (np.arange(len(self)) if self.places is None else self.places)[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return to_object_array(self.take(np.arange(len(self))))


Column = FixedColumn | TextColumn


def to_object_array(texts: pa.Array) -> NDArray[Any]:
    """Convert texts to an object array of `str` (of `bytes` for a binary column)."""
    array: NDArray[Any] = texts.to_numpy(zero_copy_only=False)
    return array


def to_microseconds(values: NDArray[Any]) -> NDArray[Any]:
    """Convert times to integer microseconds since 1970, for libraries without a time type; return other values
    unchanged."""
    return values.view(np.int64) if values.dtype.kind == "M" else values


def join_chunks(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array: not copied if it has one chunk, else copied."""
    import pyarrow as pa

    if column.num_chunks == 1:
        return column.chunk(0)
    # Only text can exceed 2 GiB, the limit of 32-bit offsets.
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(column.type, column.type)
    return column.cast(wide).combine_chunks()


def cut_batches(
    columns: Mapping[str, Column], positions: Rows, bounds: list[int], in_order: bool = False
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield batches, in which batch i has the rows positions[bounds[i]:bounds[i + 1]] of each column; texts are arrays
    of objects. in_order: the positions of each batch are consecutive numbers. The caller owns every array."""
    gathered = {
        name: column.take(positions)
        for name, column in columns.items()
        if isinstance(column, FixedColumn) and column.width <= _NARROW
    }
    for start, stop in pairwise(bounds):
        batch: dict[str, NDArray[Any]] = {}
        rows = positions[start:stop]
        for name, column in columns.items():
            if name in gathered:
                batch[name] = gathered[name][start:stop]
            elif isinstance(column, TextColumn):
                batch[name] = to_object_array(column.take(rows))
            else:
                batch[name] = column.take(slice(rows[0], rows[-1] + 1) if in_order and len(rows) else rows)
        yield batch
