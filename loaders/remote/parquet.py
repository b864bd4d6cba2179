"""Rows in Parquet files: find their row groups, and read only these and only the needed columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, FarshiftError, get_first_line
from ...splits.schema import Field, Schema
from ..export.checksums import TRUE_LABELS, decode_true_labels
from . import File
from .cached_files import forget_files
from .prefetch import THREADS, Task, prefetch_tasks
from .range_file import RangeFile
from .ranges import coalesce_ranges
from .received import parse_json_object

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Numbers = NDArray[np.int64]

_FOOTER = 1 << 16
"""Number of bytes at the end of a file that are read at once: most footers are shorter."""

_DECODED = 1 << 20
"""The approximate number of bytes of rows decoded at once, independent of the size of row groups."""

_ROWS = 1 << 13
"""The maximum number of rows decoded at once: repeated values take little space in a file but all their bytes in
memory, so the sizes in a footer are no bound."""


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files and their footers. Rows are numbered consecutively over all row groups of all files. `true_labels`
    are the numbers (ascending) and true labels of rows in which an export replaced the source's `label`."""

    files: tuple[File, ...]
    footers: tuple[pq.FileMetaData, ...]
    label: str = ""
    true_labels: tuple[Numbers, pa.ChunkedArray] | None = None

    @classmethod
    def open(cls, files: Sequence[File], schema: Schema, label: str) -> ParquetFiles:
        """Read the footers. Raises `BadData` for a file that is not Parquet, `FarshiftError` if a field is missing."""
        with ThreadPoolExecutor(THREADS) as threads:
            footers = tuple(threads.map(_read_footer, files))
        for file, footer in zip(files, footers, strict=True):
            names = footer.schema.to_arrow_schema().names
            absent = sorted({field.name for field in schema.fields} - set(names))
            if absent:
                raise FarshiftError(f"{file.name} has no column {', '.join(absent)}: it belongs to another source")
            if len(set(names)) < len(names):
                raise BadData(f"{file.name} has several columns of one name")
        return cls(tuple(files), footers, label, _read_true_labels(files, footers, schema[label]))

    def export_metadata(self) -> list[dict[str, Any]]:
        """Return each file's record of its export; empty for other files."""
        return [_read_export_metadata(file, footer) for file, footer in zip(self.files, self.footers, strict=True)]

    @cached_property
    def groups(self) -> list[tuple[int, int]]:
        """The file and number of each row group."""
        return [(file, group) for file, footer in enumerate(self.footers) for group in range(footer.num_row_groups)]

    @cached_property
    def starts(self) -> Numbers:
        """The number of each row group's first row, and last the number of all rows, shape (groups + 1,)."""
        counts = [self.footers[file].row_group(group).num_rows for file, group in self.groups]
        return np.cumsum([0, *counts])

    @property
    def rows(self) -> int:
        return int(self.starts[-1])

    @property
    def names(self) -> list[str]:
        """The columns of the first file."""
        column_names: list[str] = self.footers[0].schema.to_arrow_schema().names
        return column_names

    def group_of(self, numbers: Numbers) -> Numbers:
        """Return the row group of each row."""
        groups: Numbers = np.searchsorted(self.starts, numbers, "right") - 1
        return groups

    def describe_location(self, number: int) -> str:
        group_index = int(self.group_of(np.array([number]))[0])
        file, group = self.groups[group_index]
        return f"{self.files[file].name}, row group {group}, row {number - int(self.starts[group_index])} of it"

    def fetched(self, group_index: int, names: Sequence[str], cancel: Event) -> RangeFile:
        """Fetch these columns of a row group into memory, as a file."""
        file, group = self.groups[group_index]
        chunks = self.footers[file].row_group(group)
        selected_chunks = [
            chunk
            for chunk in map(chunks.column, range(chunks.num_columns))
            if chunk.path_in_schema.partition(".")[0] in names
        ]
        offsets = np.array(
            [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in selected_chunks], np.int64
        )
        lengths = np.array([chunk.total_compressed_size for chunk in selected_chunks], np.int64)
        if (offsets < 0).any() or (lengths < 0).any() or (lengths > self.files[file].size - offsets).any():
            raise BadData(f"{self.files[file].name}, row group {group} is outside the file: its footer is damaged")
        pieces = coalesce_ranges(np.full(len(selected_chunks), file), offsets, lengths)
        return RangeFile(self.files[file], cancel, [(piece.start, piece.stop) for piece in pieces])

    def raw(self, group_index: int, content: RangeFile, names: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield a row group's columns with their stored types, in pieces with the number of the first row. Raises
        `BadData` if they cannot be decoded."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file, group = self.groups[group_index]
        first, group_metadata = int(self.starts[group_index]), self.footers[file].row_group(group)
        rows = max(1, min(_ROWS, _DECODED * group_metadata.num_rows // max(1, group_metadata.total_byte_size)))
        try:
            opened = pq.ParquetFile(content, metadata=self.footers[file], page_checksum_verification=True)
            for batch in opened.iter_batches(rows, [group], names, use_threads=False):
                yield first, batch
                first += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            where = f"{self.files[file].name}, row group {group}"
            raise BadData(f"{where} cannot be decoded, its bytes are damaged: {get_first_line(error)}") from error

    def typed(self, first: int, batch: pa.RecordBatch, fields: Sequence[Field]) -> pa.Table:
        """Convert raw rows to the fields' types, with the source's own labels."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = {
            field.name: _convert_column(batch[field.name], field, self.describe_location(first)) for field in fields
        }
        if self.true_labels is not None and self.label in columns:
            given, labels = columns[self.label], self.true_labels[1]
            begin, end = np.searchsorted(self.true_labels[0], [first, first + batch.num_rows])
            true = labels.slice(begin, end - begin).cast(given.type).combine_chunks()
            columns[self.label] = pc.replace_with_mask(given, self.replaced(first, batch.num_rows), true)
        return pa.table(columns)

    def replaced(self, first: int, rows: int) -> NDArray[np.bool_]:
        """Return in which rows from `first` on an export replaced the label, shape (rows,)."""
        mask = np.zeros(rows, bool)
        if self.true_labels is not None:
            begin, end = np.searchsorted(self.true_labels[0], [first, first + rows])
            mask[self.true_labels[0][begin:end] - first] = True
        return mask


@dataclass(frozen=True)
class ParquetStore:
    """Selected rows of Parquet files: `number` among all rows of the files, decoded `size` in bytes, and `occurrence`,
    all of shape (rows,).

    A row group is decoded as a whole, so blocks with many rows of each group are most efficient. Therefore blocks are
    as large as the memory allows.
    """

    within: ParquetFiles
    number: Numbers
    size: Numbers
    occurrence: Numbers

    least_block = 1 << 62

    def sizes(self, rows: Numbers) -> Numbers:
        return self.size[rows]

    def occurrences(self, rows: Numbers) -> Numbers:
        return self.occurrence[rows]

    def describe_location(self, row: int) -> str:
        return self.within.describe_location(int(self.number[row]))

    def forget(self) -> None:
        forget_files(self.within.files)

    def read(self, rows: Numbers, fields: Sequence[Field], cancel: Event) -> pa.Table:
        import pyarrow as pa

        numbers = self.number[rows]
        order = np.argsort(numbers, kind="stable")
        pieces = [pa.schema([pa.field(field.name, field.arrow()) for field in fields]).empty_table()]
        for group_index, group_rows in self._by_group(numbers[order]):
            names = [field.name for field in fields]
            for first, batch in self.within.raw(group_index, self.within.fetched(group_index, names, cancel), names):
                some = group_rows[(group_rows >= first) & (group_rows < first + batch.num_rows)]
                pieces.append(self.within.typed(first, batch, fields).take(some - first))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        table = pa.concat_tables(pieces).combine_chunks()
        if table.num_rows != len(rows):
            raise BadData(
                f"{self.describe_location(int(rows[0]))}, or rows read with it: row groups are shorter than before"
            )
        return table.take(back)

    def _by_group(self, numbers: Numbers) -> Iterator[tuple[int, Numbers]]:
        """Group ascending row numbers by row group."""
        groups = self.within.group_of(numbers)
        bounds = np.flatnonzero(np.diff(groups, prepend=-1, append=-1))
        for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            yield int(groups[start]), numbers[start:stop]


def scan_rows(files: ParquetFiles, names: Sequence[str], most: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield columns of all rows in order, in pieces with the number of the first row. At most `most` bytes are
    prefetched."""

    def tasks() -> Iterator[Task[tuple[int, RangeFile]]]:
        for group_index, (file, group) in enumerate(files.groups):
            size = files.footers[file].row_group(group).total_byte_size

            def read(cancel: Event, group_index: int = group_index) -> tuple[int, RangeFile]:
                return group_index, files.fetched(group_index, names, cancel)

            yield size, read

    with closing(prefetch_tasks(tasks(), most)) as fetched:
        for group_index, content in fetched:
            yield from files.raw(group_index, content, names)


def _read_export_metadata(file: File, footer: pq.FileMetaData) -> dict[str, Any]:
    try:
        return parse_json_object((footer.metadata or {}).get(b"farshift", b"{}"))
    except ValueError as error:
        raise BadData(f"{file.name}: the record of its export is damaged: {get_first_line(error)}") from error


def _read_true_labels(
    files: Sequence[File], footers: Sequence[pq.FileMetaData], label: Field
) -> tuple[Numbers, pa.ChunkedArray] | None:
    import pyarrow as pa

    numbers, labels, first = list[Numbers](), list[pa.ChunkedArray](), 0
    for file, footer in zip(files, footers, strict=True):
        if (text := (footer.metadata or {}).get(TRUE_LABELS)) is not None:
            try:
                table = decode_true_labels(text, footer.num_rows, label)
            except (ValueError, OSError) as error:
                raise BadData(f"{file.name}: its true labels are damaged: {get_first_line(error)}") from error
            numbers.append(table["row"].to_numpy() + first)
            labels.append(table["label"])
        first += footer.num_rows
    if not numbers:
        return None
    return np.concatenate(numbers), pa.chunked_array([chunk for column in labels for chunk in column.chunks])


def _read_footer(file: File) -> pq.FileMetaData:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tail = RangeFile(file, Event(), [(max(0, file.size - _FOOTER), file.size)])
    try:
        return pq.read_metadata(tail)
    except (pa.ArrowException, OSError) as error:
        raise BadData(f"{file.name} is not a Parquet file: {get_first_line(error)}") from error


def _convert_column(column: pa.Array, field: Field, where: str) -> pa.Array:
    """Convert a column to its field's type; a tensor may be lists of any nesting. Raises `BadData` for other types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from ..readers._arrow_types import NotExact, to_item, to_stored_column

    if column.null_count:
        raise BadData(f"{where}: column {field.name!r} has missing values")
    rows, kind = len(column), field.arrow()
    if column.type == kind:
        return column
    try:
        column = to_stored_column(pa.chunked_array([column])).combine_chunks()
        if not field.shape:
            return to_item(pa.chunked_array([column]), field.item).combine_chunks()
        flat, lists = column, (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
        while any(is_list(flat.type) for is_list in lists):
            lengths = pc.min_max(pc.list_value_length(flat)).as_py()
            flat = flat.flatten()
            if lengths["min"] != lengths["max"] or flat.null_count:
                raise BadData(f"{where}: column {field.name!r} has lists of several lengths, or missing elements")
        if len(flat) == rows * kind.list_size:
            return pa.FixedSizeListArray.from_arrays(flat.cast(kind.value_type), kind.list_size)
    except (NotExact, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        why = get_first_line(error, 200)
        raise BadData(f"{where}: column {field.name!r} is {column.type}, not {field.type} ({why})") from error
    raise BadData(f"{where}: column {field.name!r} has {len(flat)} elements in {rows} rows, not {field.type}")
