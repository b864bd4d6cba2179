"""Read the columns of a part by position: gather rows from memory-mapped files into arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError
from .order import AsStored, GlobalBatches, Order

if TYPE_CHECKING:
    import pyarrow as pa

Rows = NDArray[np.int64]

Text = Literal["codes", "str", "bytes"]
"""How texts are returned: "str" as objects, "bytes" as bytes and offsets, "codes" as objects except for columns of role
meta, which are returned as codes into their categories."""


def check_text(text: str) -> None:
    if text not in get_args(Text):
        raise FarshiftError(f"text must be 'codes', 'str' or 'bytes', not {text!r}")


@dataclass(frozen=True)
class FixedColumn:
    """Values of fixed width; the first axis is the row. `stored` has them at `places`, or in order if that is None.
    Values of `override` that are not masked replace them."""

    stored: NDArray[Any]
    places: Rows | None = None
    override: np.ma.MaskedArray[Any, Any] | None = None

    def take(self, rows: Rows, buffer: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the values of some rows, in new memory or at the head of `buffer`."""
        at = rows if self.places is None else self.places[rows]
        out = None if buffer is None else buffer[: len(rows)]
        # Opening a split checks its places against the source; checking again here would give `out` a second buffer.
        values: NDArray[Any] = np.take(self.stored, at, axis=0, mode="clip", out=out)
        if self.override is not None:
            overrides = self.override[rows]
            np.copyto(values, overrides.data, where=~np.ma.getmaskarray(overrides))
        return values

    @property
    def lies_in_order(self) -> bool:
        """Whether the rows are in order in memory, so that `view` does not copy."""
        return self.places is None and self.override is None

    def view(self, start: int, stop: int) -> NDArray[Any]:
        """Return rows [start, stop) of a column that is in order, read-only and not copied."""
        view = self.stored[start:stop]
        view.flags.writeable = False
        return view

    @property
    def width(self) -> int:
        """Bytes of a row."""
        return self.stored.dtype.itemsize * prod(self.stored.shape[1:])

    def buffer(self, rows: int) -> NDArray[Any]:
        """Return an uninitialised array for this many rows."""
        return np.empty((rows, *self.stored.shape[1:]), self.stored.dtype)


@dataclass(frozen=True)
class TextColumn:
    """Values of variable length, as an Arrow array of text or bytes; `places` as in `FixedColumn`."""

    stored: pa.Array
    places: Rows | None = None

    def take(self, rows: Rows) -> pa.Array:
        return self.stored.take(rows if self.places is None else self.places[rows])

    @property
    def lies_in_order(self) -> bool:
        """Whether the rows are in order in memory, so that `view` does not copy."""
        return self.places is None

    def view(self, start: int, stop: int) -> pa.Array:
        """Return rows [start, stop) of a column that is in order, not copied."""
        return self.stored.slice(start, stop - start)

    def raw(self, start: int, stop: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """`copy_bytes_and_offsets` of `view`."""
        content, bounds = self._buffers
        first, last = bounds[start], bounds[stop]
        return content[first:last].copy(), np.subtract(bounds[start : stop + 1], first, dtype=np.int64)

    @cached_property
    def _buffers(self) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        return _read_buffers(self.stored)


Column = FixedColumn | TextColumn

_KEPT_ROWS = 2**20
_NARROW = 16
_KEPT_BYTES = 64 * 2**20
_SAMPLE, _OFTEN, _FEW = 1024, 8, 4096
"""A column of at most `_NARROW` bytes a row is gathered at once in a part of at most `_KEPT_ROWS` rows; a wider one of
at most `_KEPT_BYTES` when it is read a second time. A text column counts as having few values if those of the first
`_SAMPLE` rows occur `_OFTEN` times each, and there are at most `_FEW` in all."""


def prepare_column(column: Column, rows: int, text: Text) -> Column:
    """Prepare a column of a part of `rows` rows for many batches: a narrow one is gathered into the part's order, and a
    text column with few values (a domain, a speaker) has one object for each value, shared by its rows."""
    if rows > _KEPT_ROWS or (isinstance(column, TextColumn) and text == "bytes"):
        return column
    every = np.arange(rows)
    if isinstance(column, TextColumn):
        shared = _share_objects(column, every)
        return column if shared is None else FixedColumn(shared)
    return column if column.lies_in_order or column.width > _NARROW else FixedColumn(column.take(every))


def materialise_column(column: Column, rows: int) -> Column:
    """Prepare a column that is read again after `prepare_column`: if it is scattered and small, gather it in memory in
    the part's order. That does not pay off for a single pass."""
    if isinstance(column, TextColumn) or column.lies_in_order or rows * column.width > _KEPT_BYTES:
        return column
    return FixedColumn(column.take(np.arange(rows)))


def _share_objects(column: TextColumn, every: Rows) -> NDArray[Any] | None:
    """A text column as an array of shared objects; None if it has many distinct values."""
    import pyarrow as pa

    kind = column.stored.type
    sample = every[:_SAMPLE]
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    if len(column.take(sample).unique()) > len(sample) / _OFTEN:
        return None
    coded = column.take(every).dictionary_encode()
    if coded.null_count or len(coded.dictionary) > _FEW:
        return None
    array: NDArray[Any] = to_object_array(coded.dictionary)[coded.indices.to_numpy()]
    return array


Read: TypeAlias = "NDArray[Any] | pa.Array | tuple[NDArray[np.uint8], NDArray[np.int64]]"


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


def copy_bytes_and_offsets(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return copies of the concatenated bytes of texts, and of their offsets, shape (texts + 1,)."""
    content, bounds = _read_buffers(texts)
    return content[bounds[0] : bounds[-1]].copy(), np.subtract(bounds, bounds[0], dtype=np.int64)


def _read_buffers(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """The buffer of texts and their offsets in it, shape (texts + 1,); not copied."""
    import pyarrow as pa

    _, offsets, content = texts.buffers()
    wide = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    bounds: NDArray[Any] = np.zeros(1, np.int64)
    if len(texts):
        stored = np.frombuffer(offsets, np.int64 if wide else np.int32)
        bounds = stored[texts.offset : texts.offset + len(texts) + 1]
    return (np.zeros(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)), bounds


def make_batch(
    columns: Mapping[str, Column], read: Callable[[str, Column], Read], raw_text: bool
) -> dict[str, NDArray[Any]]:
    """Make a batch of what `read` returns for each column: a text column is two arrays with `raw_text`, `<name>` and
    `<name>.offsets`, else one of objects."""
    batch: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        values = read(name, column)
        if isinstance(values, np.ndarray):
            batch[name] = values
        elif isinstance(values, tuple):
            batch[name], batch[f"{name}.offsets"] = values
        elif raw_text:
            batch[name], batch[f"{name}.offsets"] = copy_bytes_and_offsets(values)
        else:
            batch[name] = to_object_array(values)
    return batch


def read_batches(
    columns: Mapping[str, Column], order: Order, cut: GlobalBatches, steps: range, raw_text: bool, reuse: bool
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield a rank's share of the global batches `steps`, each as `make_batch`. With `reuse`, arrays of fixed width are
    views of the file if the rows are adjacent, else of one buffer. Without it, narrow columns are gathered for many
    batches at once, and each batch gets a slice."""
    narrow = {
        name: column
        for name, column in columns.items()
        if isinstance(column, FixedColumn) and column.width <= _NARROW and not reuse
    }
    wide = {name: column for name, column in columns.items() if name not in narrow}
    texts = {name for name, column in columns.items() if raw_text and isinstance(column, TextColumn)}
    names = [own for name in columns for own in ((name, f"{name}.offsets") if name in texts else (name,))]
    room = -(-min(cut.batch_size, cut.rows) // cut.world)
    side_by_side = {name for name, column in columns.items() if column.lies_in_order and isinstance(order, AsStored)}
    buffers = {
        name: column.buffer(room)
        for name, column in columns.items()
        if reuse and isinstance(column, FixedColumn) and name not in side_by_side and column.stored.dtype != object
    }

    def read(name: str, column: Column, rows: Rows) -> Read:
        if name in side_by_side:
            first = int(rows[0]) if len(rows) else 0
            if raw_text and isinstance(column, TextColumn):
                return column.raw(first, first + len(rows))
            view = column.view(first, first + len(rows))
            return view.copy() if isinstance(view, np.ndarray) and not (reuse and view.dtype != object) else view
        return column.take(rows, buffers.get(name)) if isinstance(column, FixedColumn) else column.take(rows)

    for positions, bounds in cut.positions(order, steps):
        gathered = {name: column.take(positions) for name, column in narrow.items()}
        for start, stop in pairwise(bounds):
            rest = make_batch(wide, partial(read, rows=positions[start:stop]), raw_text) if wide else {}
            slices = {name: values[start:stop] for name, values in gathered.items()}
            yield {name: slices[name] if name in slices else rest[name] for name in names}


@dataclass(frozen=True)
class CategoryCodes:
    """A text column as `codes`, shape (rows,), into `categories`, its distinct texts sorted by code point."""

    codes: NDArray[np.int32]
    values: pa.Array

    @property
    def categories(self) -> NDArray[np.object_]:
        """The distinct texts, as `str`."""
        return to_object_array(self.values)


_CODED: dict[int, dict[str, CategoryCodes]] = {}
"""Cached by table object for its lifetime: all parts of an opened split share the codes of their source."""


def encode_categories(source: pa.Table, name: str) -> CategoryCodes:
    """Return the codes of a source's text column, computed once."""
    cached_columns = _CODED.get(id(source))
    if cached_columns is None:
        cached_columns = _CODED[id(source)] = {}
        weakref.finalize(source, _CODED.pop, id(source), None)
    if name not in cached_columns:
        cached_columns[name] = _encode_column(source[name])
    return cached_columns[name]


def _encode_column(column: pa.ChunkedArray) -> CategoryCodes:
    import pyarrow.compute as pc

    dictionary_array = join_chunks(column).dictionary_encode()
    order = pc.sort_indices(dictionary_array.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return CategoryCodes(ranks[dictionary_array.indices.to_numpy()], dictionary_array.dictionary.take(order))
