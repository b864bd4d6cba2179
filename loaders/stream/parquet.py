"""Rows in Parquet files: find their row groups, and read only these and only the needed columns."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Event
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, FarshiftError, get_first_line
from ...splits.schema import Field, Schema
from ..readers._arrow_types import NotExact, to_item, to_stored_column
from .files import File, RangeFile, coalesce_ranges
from .part import THREADS, Store, prefetch_tasks

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
    """Parquet files and their footers. Rows are numbered consecutively over all row groups of all files."""

    files: tuple[File, ...]
    footers: tuple[pq.FileMetaData, ...]
    schema: Schema

    @classmethod
    def open(cls, files: Sequence[File], schema: Schema) -> ParquetFiles:
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
        return cls(tuple(files), footers, schema)

    @cached_property
    def groups(self) -> list[tuple[int, int]]:
        """The file and number of each row group."""
        return [(file, group) for file, footer in enumerate(self.footers) for group in range(footer.num_row_groups)]

    @cached_property
    def starts(self) -> Numbers:
        """The number of each row group's first row, and last the number of all rows, shape (groups + 1,)."""
        return np.cumsum([0, *(self.footers[file].row_group(group).num_rows for file, group in self.groups)])

    def group_of(self, numbers: Numbers) -> Numbers:
        """Return the row group of each row."""
        return np.searchsorted(self.starts, numbers, "right") - 1

    def describe_location(self, number: int) -> str:
        group_index = int(self.group_of(np.array([number]))[0])
        return f"{self.describe_group(group_index)}, row {number - int(self.starts[group_index])} of it"

    def describe_group(self, group_index: int) -> str:
        file, group = self.groups[group_index]
        return f"{self.files[file].name}, row group {group}"

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        return [field.name for field in self.schema.fields]

    def fetch(self, group_index: int, cancel: Event) -> RangeFile:
        """Fetch the columns of a row group into memory, as a file."""
        file, group = self.groups[group_index]
        metadata = self.footers[file].row_group(group)
        chunks = [metadata.column(index) for index in range(metadata.num_columns)]
        chunks = [chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in self.names]
        offsets = np.array([chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks], np.int64)
        lengths = np.array([chunk.total_compressed_size for chunk in chunks], np.int64)
        if (offsets < 0).any() or (lengths < 0).any() or (lengths > self.files[file].size - offsets).any():
            raise BadData(f"{self.describe_group(group_index)} is outside the file: its footer is damaged")
        pieces = coalesce_ranges(np.full(len(chunks), file), offsets, lengths)
        return RangeFile(self.files[file], cancel, [(piece.start, piece.stop) for piece in pieces])

    def decode(self, group_index: int, content: RangeFile) -> Iterator[tuple[int, pa.Table]]:
        """Yield a row group's columns with the fields' types, in pieces with the number of the first row. Raises
        `BadData` if they cannot be decoded."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file, group = self.groups[group_index]
        first, metadata = int(self.starts[group_index]), self.footers[file].row_group(group)
        rows = max(1, min(_ROWS, _DECODED * metadata.num_rows // max(1, metadata.total_byte_size)))
        try:
            opened = pq.ParquetFile(content, metadata=self.footers[file], page_checksum_verification=True)
            for batch in opened.iter_batches(rows, [group], self.names, use_threads=False):
                where = self.describe_location(first)
                columns = {field.name: _convert_column(batch[field.name], field, where) for field in self.schema.fields}
                yield first, pa.table(columns)
                first += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise BadData(
                f"{self.describe_group(group_index)} cannot be decoded, its bytes are damaged: {get_first_line(error)}"
            ) from error

    def scan(self, most: int) -> Generator[tuple[int, pa.Table], None, None]:
        """Yield all rows in order, in pieces with the number of the first row. At most `most` bytes are prefetched."""

        def fetch(group_index: int, cancel: Event) -> tuple[int, RangeFile]:
            return group_index, self.fetch(group_index, cancel)

        sizes = (self.footers[file].row_group(group).total_byte_size for file, group in self.groups)
        tasks = ((size, partial(fetch, group_index)) for group_index, size in enumerate(sizes))
        with closing(prefetch_tasks(tasks, most)) as fetched:
            for group_index, content in fetched:
                yield from self.decode(group_index, content)


def _read_footer(file: File) -> pq.FileMetaData:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(RangeFile(file, Event(), [(max(0, file.size - _FOOTER), file.size)]))
    except (pa.ArrowException, OSError) as error:
        raise BadData(f"{file.name} is not a Parquet file: {get_first_line(error)}") from error


def _convert_column(column: pa.Array, field: Field, where: str) -> pa.Array:
    """Convert a column to its field's type; a tensor may be lists of any nesting. Raises `BadData` for other types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        raise BadData(f"{where}: column {field.name!r} has missing values")
    rows, kind = len(column), field.arrow()
    if column.type == kind:
        return column
    try:
        if not field.shape:
            return to_item(pa.chunked_array([column]), field.item).combine_chunks()
        flat = to_stored_column(pa.chunked_array([column])).combine_chunks()
        lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
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


@dataclass(frozen=True)
class ParquetStore(Store):
    """Selected rows of Parquet files, `number` (shape (rows,)) among all rows of the files.

    A row group is decoded as a whole, so blocks with many rows of each group are most efficient. Therefore blocks are
    as large as the memory allows.
    """

    within: ParquetFiles
    number: Numbers

    least_block: ClassVar[int] = 1 << 62

    def describe_location(self, row: int) -> str:
        return self.within.describe_location(int(self.number[row]))

    def read(self, rows: Numbers, cancel: Event) -> pa.Table:
        import pyarrow as pa

        numbers, back = np.unique(self.number[rows], return_inverse=True)
        types = {field.name: field.arrow() for field in self.within.schema.fields}
        pieces = [pa.schema(types).empty_table()]
        for group_index in np.unique(self.within.group_of(numbers)).tolist():
            for first, table in self.within.decode(group_index, self.within.fetch(group_index, cancel)):
                some = numbers[slice(*np.searchsorted(numbers, [first, first + table.num_rows]))]
                pieces.append(table.take(some - first))
        table = pa.concat_tables(pieces).combine_chunks()
        if table.num_rows != len(numbers):
            raise BadData(
                f"{self.describe_location(int(rows[0]))}, or rows read with it: row groups are shorter than before"
            )
        return table.take(back)
