"""Build a source that may be larger than memory from the tables that its reader yields.

Each table's rows are hashed, and appended to files on disk, which are then put into the order of the row ids. The files
are memory-mapped and never read whole: memory holds the rows of one piece or chunk, and 40 bytes a row for ids and
digests.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...core.progress import report_progress
from ...splits.rows import (
    Bytes,
    compute_first_ids,
    compute_row_digests,
    compute_set_digest,
    get_digest_prefixes,
    mark_repeated_inputs,
    number_duplicates,
    read_ragged_column,
)
from ...splits.schema import Field, Schema
from ..cache.store import make_write_options
from ..files.reader_errors import convert_reader_errors

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK = 1 << 18
"""Number of rows reordered at a time."""

_WRITE = 1 << 24
"""Number of bytes of one write."""

_NARROW = 2**31 - 1
"""The largest number of bytes that 32-bit offsets can address."""


def build_in_pieces(tables: Iterable[pa.Table], schema: Schema, where: str, target: Path) -> str:
    """Write a source's rows, in ascending row id with `row_id` and `check`, as one Arrow file `target`.

    `where` names the source in messages. Returns the digest of the set of rows.
    """
    import pyarrow as pa

    id_parts: list[NDArray[np.uint64]] = [np.empty(0, np.uint64)]
    digest_parts: list[Bytes] = [np.empty((0, 32), np.uint8)]
    rows = 0
    with ColumnFiles(schema, target) as stored, ColumnFiles(schema, target) as ordered:
        with convert_reader_errors("its data"):
            for piece in tables:
                table = schema.conform(piece, where)
                stored.append(table)
                id_parts.append(compute_first_ids(table, schema))  # as first occurrences
                digest_parts.append(compute_row_digests(table, schema))
                report_progress("rows read", rows := rows + table.num_rows)
            report_progress("rows read", rows, rows)
        ids, digests = np.concatenate(id_parts), np.concatenate(digest_parts)
        del id_parts, digest_parts
        unordered = stored.map_table()
        repeated = np.sort(ids[number_duplicates(unordered, schema, ids)])
        order = np.argsort(ids)
        digest, checks = compute_set_digest(digests), get_digest_prefixes(digests)[order]
        del digests  # a third of the memory at this point
        for start in range(0, len(order), _CHUNK):
            ordered.append(unordered.take(pa.array(order[start : start + _CHUNK])))
        table = ordered.map_table().append_column("row_id", pa.array(ids[order]))
        _write_batch(mark_repeated_inputs(table.append_column("check", pa.array(checks)), repeated), target)
    return digest


class ColumnFiles:
    """A growing table on disk, in a folder beside `target` and named after it, so that leftovers of a killed build are
    recognised. Use as a context manager, which removes its files at the end."""

    def __init__(self, schema: Schema, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix=f"{target.name}.", suffix=".tmp", dir=target.parent)
        self._columns = [_Column(field, Path(self._folder.name)) for field in schema.fields]

    def __enter__(self) -> ColumnFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for column in self._columns:
            column.close()
        self._folder.cleanup()

    def append(self, table: pa.Table) -> None:
        """Append rows that conform to the schema."""
        for column in self._columns:
            column.append(table[column.field.name])

    def map_table(self) -> pa.Table:
        """Return the rows so far, memory-mapped. Rows that are appended later are not in it."""
        import pyarrow as pa

        columns = {column.field.name: column.map_values() for column in self._columns}
        fields = [pa.field(name, values.type, nullable=False) for name, values in columns.items()]
        return pa.table(list(columns.values()), schema=pa.schema(fields))


class _Column:
    """One column: the concatenated bytes of its values, and for text the end of each value."""

    def __init__(self, field: Field, folder: Path) -> None:
        self.field = field
        self._rows = self._bytes = 0
        self._data: BinaryIO = (folder / f"{field.name}.data").open("wb+")
        ragged = field.item in ("string", "bytes")
        self._ends: BinaryIO | None = (folder / f"{field.name}.ends").open("wb+") if ragged else None

    def close(self) -> None:
        self._data.close()
        if self._ends is not None:
            self._ends.close()

    def append(self, column: pa.ChunkedArray) -> None:
        import pyarrow.compute as pc

        if self._ends is not None:
            content, bounds = read_ragged_column(column)
            self._data.write(content[bounds[0] : bounds[-1]].data)
            self._ends.write((bounds[1:] - bounds[0] + self._bytes).astype("<i8").data)
            self._bytes += int(bounds[-1] - bounds[0])
        else:
            values = (pc.list_flatten(column) if self.field.shape else column).to_numpy()
            values = values.view(np.int64) if values.dtype.kind == "M" else values
            self._data.write(np.ascontiguousarray(values.astype(np.uint8) if values.dtype == bool else values).data)
        self._rows += len(column)

    def map_values(self) -> pa.Array:
        import pyarrow as pa

        kind, values = self.field.arrow(), _map_file(self._data, "u1")
        if self._ends is not None:
            ends = np.zeros(self._rows + 1, np.int64)
            if self._rows:
                ends[1:] = _map_file(self._ends, "<i8")
            wide = self._bytes > _NARROW
            kind = {"string": pa.large_string(), "bytes": pa.large_binary()}[self.field.item] if wide else kind
            offsets = pa.py_buffer(ends if wide else ends.astype(np.int32))
            return pa.Array.from_buffers(kind, self._rows, [None, offsets, pa.py_buffer(values)])
        if self.field.item == "bool":
            return pa.array(values.astype(bool))
        if not self.field.shape:
            return pa.Array.from_buffers(kind, self._rows, [None, pa.py_buffer(values)])
        items = pa.Array.from_buffers(kind.value_type, self._rows * kind.list_size, [None, pa.py_buffer(values)])
        return pa.FixedSizeListArray.from_arrays(items, type=kind)


def _map_file(file: BinaryIO, kind: str) -> NDArray[Any]:
    file.flush()
    return np.memmap(file, kind, "r") if file.tell() else np.zeros(0, kind)  # an empty file cannot be mapped


def _write_batch(table: pa.Table, target: Path) -> None:
    """Write a table as an Arrow file of one record batch."""
    import pyarrow as pa

    with (
        target.open("wb", buffering=0) as file,
        pa.PythonFile(_CopyingFile(file), "w") as sink,
        pa.ipc.new_file(sink, table.schema, options=make_write_options()) as writer,
    ):
        writer.write_table(table, max_chunksize=max(1, table.num_rows))


class _CopyingFile:
    """A file that is written from memory in large pieces. If it were written directly from a mapped file, the kernel
    would write single pages where the map is not in memory yet, and the new file would be slower to read when
    mapped."""

    closed = False

    def __init__(self, file: Any) -> None:
        self.tell, self.flush, self._write = file.tell, file.flush, file.write

    def write(self, content: bytes | memoryview) -> int:
        view = memoryview(content).cast("B")
        done = 0
        while done < len(view):
            done += self._write(bytes(view[done : done + _WRITE])) or 0
        return done

    def close(self) -> None:
        self.closed = True
