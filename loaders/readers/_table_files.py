"""The rows of a table's file in blocks, for each format."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...core.errors import BadData, BadDefinition, get_first_line
from ._arrow_types import to_stored_column
from ._cells import Cells
from ._inputs import Input
from ._records import read_lines, read_list
from ._separated import ColumnSelector
from ._table_options import TableOptions

_ROWS = 1 << 16


def read_cells(source: Input, options: TableOptions, select_columns: ColumnSelector) -> Iterator[Cells]:
    """Yield the rows of a file in blocks. `select_columns` is called with the column names, and returns the indices of
    those to read."""
    match format := options.format_of(source.path):
        case "csv" | "tsv":
            return options.separated(format).read(source, select_columns)
        case "jsonl":
            return read_lines(source, options.text, select_columns)
        case "json":
            return read_list(source, options.text, options.records, select_columns)
        case "parquet":
            return _read_parquet(source, select_columns)
        case "lines":
            return _read_text_lines(source, options, select_columns)
    raise BadDefinition(f"{source.name}: unknown format {format!r}")


def _read_parquet(source: Input, select_columns: ColumnSelector) -> Iterator[Cells]:
    done = 0
    try:
        with (
            source.opened() as file,
            pq.ParquetFile(file if file.seekable() else io.BytesIO(file.read())) as parquet_file,
        ):
            paths = list(_iterate_paths(parquet_file.schema_arrow))
            names = [".".join(path) for path in paths]
            places = sorted(select_columns(names))
            if not places:
                return
            for batch in parquet_file.iter_batches(_ROWS, columns=[names[index] for index in places]):
                table = pa.Table.from_batches([batch])
                columns = {str(index): to_stored_column(_get_child(table, paths[index])) for index in places}
                rows = np.arange(done, done + batch.num_rows)
                yield Cells(source.name, names, pa.table(columns), rows, lambda row: f"row {row + 1}")
                done += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise BadData(f"{source.name}: not a readable Parquet file: {get_first_line(error)}") from error


def _iterate_paths(schema: pa.Schema) -> Iterator[tuple[str, ...]]:
    """Return the names of columns; fields of a structure have both names, joined by a dot."""
    left: list[tuple[tuple[str, ...], pa.Field]] = [((field.name,), field) for field in schema]
    for path, field in left:
        yield path
        if pa.types.is_struct(field.type):
            left.extend(((*path, child.name), child) for child in field.type)


def _get_child(table: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    column = table[path[0]]
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _read_text_lines(source: Input, options: TableOptions, select_columns: ColumnSelector) -> Iterator[Cells]:
    """Yield a row for each line and a column for each named group of the pattern, which every line must fit."""
    if not options.pattern:
        raise BadDefinition("table: the format lines needs a `pattern` with named groups: (?P<name>..)")
    done = 0
    for block in options.text.blocks(source):
        lines = pa.array([line.rstrip(b"\r") for line in block.split(b"\n")], pa.binary())
        if block.endswith(b"\n"):
            lines = lines[:-1]
        try:
            parts = pc.extract_regex(lines.cast(pa.string()), options.pattern)
        except pa.ArrowInvalid as error:
            for _ in options.text.lines(source):
                pass  # text.lines raises for lines that are not text
            raise BadDefinition(f"table: the pattern of {source.name}: {get_first_line(error)}") from error
        locate = partial(_locate_line, source, options)
        rows = np.arange(done, done + len(lines))
        if parts.null_count:
            first = pc.index(parts.is_null(), True).as_py()
            raise BadData(
                f"{source.name}, {locate(done + first)}: {lines[first].as_py()[:60].decode(errors='replace')!r} "
                "does not fit the pattern"
            )
        table = pa.Table.from_struct_array(parts)
        names = table.column_names
        yield Cells(
            source.name,
            names,
            pa.table({str(index): table[index] for index in sorted(select_columns(names))}),
            rows,
            locate,
        )
        done += len(lines)


def _locate_line(source: Input, options: TableOptions, row: int) -> str:
    return f"line {next(islice((number for number, _ in options.text.lines(source)), row, None), row + 1)}"
