"""Tables larger than memory: columns are appended to plain files, then written in any order as one Arrow record batch.

The files are memory-mapped and never read whole: memory holds the rows of one chunk, and eight bytes a row for the
order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...splits.rows import read_ragged_column
from ...splits.schema import Field, Schema
from ..cache.store import make_write_options

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK = 1 << 18
"""Number of rows reordered at a time."""

_WRITE = 1 << 24
"""Number of bytes of one write."""

_NARROW = 2**31 - 1
"""The largest number of bytes that 32-bit offsets can address."""


class ColumnFiles:
    """A growing table on disk, in a folder beside `target` and named after it, so that leftovers of a killed build are
    recognised. Use as a context manager, which removes its files at the end."""

    def __init__(self, schema: Schema, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix=f"{target.name}.", suffix=".tmp", dir=target.parent)
        self._schema = schema
        self._columns = [_Column(field, Path(self._folder.name)) for field in schema.fields]
        self.rows = 0

    def __enter__(self) -> ColumnFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for column in self._columns:
            column.close()
        self._folder.cleanup()

    def append(self, table: pa.Table) -> None:
        """Append rows that conform to the schema."""
        for column in self._columns:
            column.append(table[column.field.name])
        self.rows += table.num_rows

    def table(self) -> pa.Table:
        """The rows so far, memory-mapped. Rows that are appended later are not in it."""
        import pyarrow as pa

        columns = [column.mapped() for column in self._columns]
        fields = [
            pa.field(column.field.name, values.type, nullable=False)
            for column, values in zip(self._columns, columns, strict=True)
        ]
        return pa.table(columns, schema=pa.schema(fields))

    def write(
        self,
        order: NDArray[np.int64],
        added: dict[str, NDArray[Any]],
        target: Path,
        finished: Callable[[pa.Table], pa.Table],
    ) -> None:
        """Write the rows in `order`, and the arrays `added` (not reordered), as an Arrow file of one record batch.
        `finished` may change the mapped table before it is written."""
        import pyarrow as pa

        stored = self.table()
        with ColumnFiles(self._schema, target) as ordered:
            for start in range(0, self.rows, _CHUNK):
                ordered.append(stored.take(pa.array(order[start : start + _CHUNK])))
            table = ordered.table()
            for name, values in added.items():
                table = table.append_column(name, pa.array(values))
            table = finished(table)
            with (
                target.open("wb", buffering=0) as file,
                pa.PythonFile(_BufferedFile(file), "w") as sink,
                pa.ipc.new_file(sink, table.schema, options=make_write_options()) as writer,
            ):
                writer.write_table(table, max_chunksize=max(1, table.num_rows))


class _BufferedFile:
    """A file that is written from memory in large pieces. If it were written directly from a mapped file, the kernel
    would write single pages where the map is not in memory yet, and the new file would be slower to read when
    mapped."""

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self.closed = False

    def write(self, content: bytes | memoryview) -> int:
        view = memoryview(content).cast("B")
        done = 0
        while done < len(view):
            done += self._file.write(bytes(view[done : done + _WRITE])) or 0
        return done

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.closed = True


class _Column:
    """One column: the concatenated bytes of its values, and for text the end of each value."""

    def __init__(self, field: Field, folder: Path) -> None:
        self.field = field
        self._ragged = field.item in ("string", "bytes")
        self._rows = self._bytes = 0
        self._data: BinaryIO = (folder / f"{field.name}.data").open("wb+")
        self._ends: BinaryIO | None = (folder / f"{field.name}.ends").open("wb+") if self._ragged else None

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
            flat = pc.list_flatten(column) if self.field.shape else column
            values = flat.to_numpy()
            values = values.view(np.int64) if values.dtype.kind == "M" else values
            self._data.write(np.ascontiguousarray(values.astype(np.uint8) if values.dtype == bool else values).data)
        self._rows += len(column)

    def mapped(self) -> pa.Array:
        import pyarrow as pa

        kind = self.field.arrow()
        if self._ends is not None:
            ends = np.zeros(self._rows + 1, np.int64)
            if self._rows:
                ends[1:] = self._map(self._ends)
            wide = self._bytes > _NARROW
            kind = {"string": pa.large_string(), "bytes": pa.large_binary()}[self.field.item] if wide else kind
            offsets = pa.py_buffer(ends if wide else ends.astype(np.int32))
            return pa.Array.from_buffers(kind, self._rows, [None, offsets, pa.py_buffer(self._map(self._data))])
        values = self._map(self._data)
        if self.field.item == "bool":
            return pa.array(values.astype(bool))
        if not self.field.shape:
            return pa.Array.from_buffers(kind, self._rows, [None, pa.py_buffer(values)])
        items = pa.Array.from_buffers(kind.value_type, self._rows * kind.list_size, [None, pa.py_buffer(values)])
        return pa.FixedSizeListArray.from_arrays(items, type=kind)

    def _map(self, file: BinaryIO) -> NDArray[Any]:
        """The content of a file: bytes, or 64-bit end offsets."""
        file.flush()
        if not file.tell():
            return np.zeros(0, np.uint8)  # an empty file cannot be mapped
        return np.memmap(file, "<i8" if file is self._ends else np.uint8, "r")
