"""The rows of a table's file, whatever its format, in blocks."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadData, BadDefinition, first_line
from ._arrow_types import plain
from ._cells import Cells
from ._inputs import Input
from ._records import read_lines, read_list
from ._separated import Wanted
from ._table_options import TableOptions

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 1 << 16


def cells_of(source: Input, options: TableOptions, wanted: Wanted) -> Iterator[Cells]:
    """The rows of a file in blocks; of its columns those `wanted`, which are places among their names."""
    match format := options.format_of(source.path):
        case "csv" | "tsv":
            return options.separated(format).read(source, wanted)
        case "jsonl":
            return read_lines(source, options.text, wanted)
        case "json":
            return read_list(source, options.text, options.records, wanted)
        case "parquet":
            return _parquet(source, wanted)
        case "lines":
            return _lines(source, options, wanted)
    raise BadDefinition(f"{source.name}: no format {format!r}")


def _parquet(source: Input, wanted: Wanted) -> Iterator[Cells]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    done = 0
    try:
        with source.opened() as file, pq.ParquetFile(file if file.seekable() else io.BytesIO(file.read())) as found:
            paths = list(_paths(found.schema_arrow))
            names = [".".join(path) for path in paths]
            places = sorted(wanted(names))
            if not places:
                return
            for batch in found.iter_batches(_ROWS, columns=[names[place] for place in places]):
                table = pa.Table.from_batches([batch])
                columns = {str(place): plain(_child(table, paths[place])) for place in places}
                rows = np.arange(done, done + batch.num_rows)
                yield Cells(source.name, names, pa.table(columns), rows, lambda row: f"row {row + 1}")
                done += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise BadData(f"{source.name}: not a readable Parquet file: {first_line(error)}") from error


def _paths(schema: pa.Schema) -> Iterator[tuple[str, ...]]:
    """The names of columns; those of a structure's fields by both names."""
    import pyarrow as pa

    left: list[tuple[tuple[str, ...], pa.Field]] = [((field.name,), field) for field in schema]
    for path, field in left:
        yield path
        if pa.types.is_struct(field.type):
            left.extend(((*path, child.name), child) for child in field.type)


def _child(table: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    column = table[path[0]]
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _lines(source: Input, options: TableOptions, wanted: Wanted) -> Iterator[Cells]:
    """A row for each line that fits the pattern, a column for each of its named groups; every line has to fit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not options.pattern:
        raise BadDefinition("table: lines need a `pattern` with named groups: (?P<name>..)")
    done = 0
    for block in options.text.blocks(source):
        lines = pa.array([line.rstrip(b"\r") for line in block.split(b"\n")], pa.binary())
        if block.endswith(b"\n"):
            lines = lines[:-1]
        try:
            parts = pc.extract_regex(lines.cast(pa.string()), options.pattern)
        except pa.ArrowInvalid as error:
            for _ in options.text.lines(source):
                pass  # what is no text is named with its line
            raise BadDefinition(f"table: the pattern of {source.name}: {first_line(error)}") from error
        locate = partial(_line, source, options)
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
            source.name, names, pa.table({str(place): table[place] for place in sorted(wanted(names))}), rows, locate
        )
        done += len(lines)


def _line(source: Input, options: TableOptions, row: int) -> str:
    return f"line {next(islice((number for number, _ in options.text.lines(source)), row, None), row + 1)}"
