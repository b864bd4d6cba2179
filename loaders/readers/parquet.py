"""Parquet files, with fields from columns of the same or another name; large files are read in shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...core.errors import BadData, get_first_line
from ...splits.schema import Schema
from ..files.parquet_expansion import refuse_expansion
from ..files.reader_errors import convert_reader_errors
from ._arrow_types import (
    NotExact,
    Ragged,
    describe_remedy,
    describe_type,
    find_item_type,
    is_tensor,
    to_item,
    to_stored_column,
    to_tensors,
)
from ._cells import describe_missing, find_indices, find_missing, format_field

_ROWS = 1 << 18
"""Row groups are combined until a shard has this many rows."""


@dataclass(frozen=True)
class Shard:
    """Row groups [first, last) of one file, from the row `start` on. `columns` has the column of each field, `maps` the
    texts of a field whose values are their indices, `items` the item types of scalar fields. labels: fields whose lists
    may have NaN, for unknown labels."""

    path: Path
    name: str
    first: int
    last: int
    columns: tuple[tuple[str, str], ...]
    maps: tuple[tuple[str, tuple[str, ...]], ...] = ()
    items: tuple[tuple[str, str], ...] = ()
    start: int = 0
    labels: tuple[str, ...] = ()


def read(
    files: Mapping[str, Path],
    *,
    columns: dict[str, str],
    maps: dict[str, list[str]] | None = None,
    schema: Schema | None = None,
) -> pa.Table:
    """Read the fields in `columns`, each from its column, of all files in the order of their names. `maps`: a field's
    texts, whose indices are its values. Raises `BadData` with the row of a missing value (null or NaN)."""
    tables = [read_shard(shard) for shard in shards(files, columns=columns, maps=maps, schema=schema)]
    if not tables:
        raise BadData(f"{', '.join(sorted(files))} {'has' if len(files) == 1 else 'have'} no rows")
    return pa.concat_tables(tables)


def shards(
    files: Mapping[str, Path],
    *,
    columns: dict[str, str],
    maps: dict[str, list[str]] | None = None,
    schema: Schema | None = None,
) -> list[Shard]:
    """Return shards that together have the rows of all files, and can be read independently."""
    labels = tuple(field.name for field in schema.of_role("label")) if schema else ()
    scalars = [field for field in schema.fields if not field.shape and field.name not in (maps or {})] if schema else []
    items = tuple((field.name, field.item) for field in scalars)
    meanings = tuple((field, tuple(texts)) for field, texts in sorted((maps or {}).items()))
    result = []
    for name, path in sorted(files.items()):
        with convert_reader_errors(name), open_parquet(path, name) as file:
            absent = sorted(column for column in set(columns.values()) if not _has_column(column, file.schema_arrow))
            if absent:
                raise BadData(f"{name} has no column {', '.join(absent)} (it has {', '.join(file.schema_arrow.names)})")
            _refuse_expansion(path, file, columns.values(), name)
            counts = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
        fields = tuple(sorted(columns.items()))
        first = rows = start = 0
        for group, count in enumerate(counts):
            rows += count
            if rows >= _ROWS or group + 1 == len(counts):
                result.append(Shard(path, name, first, group + 1, fields, meanings, items, start, labels))
                first, rows, start = group + 1, 0, start + rows
    return result


def read_shard(shard: Shard) -> pa.Table:
    """Read the rows of one shard."""
    source_columns = dict(shard.columns)
    where = f"{shard.name}: row groups {shard.first} to {shard.last - 1}"
    with convert_reader_errors(where), open_parquet(shard.path, shard.name) as file:
        try:
            table = file.read_row_groups(range(shard.first, shard.last), sorted(set(source_columns.values())))
        except OSError as error:
            raise BadData(f"{where} cannot be read: {get_first_line(error)}") from error
    field_columns = {field: to_stored_column(_get_column(table, column)) for field, column in source_columns.items()}
    for field, column in field_columns.items():
        _refuse_missing(
            column, f"{shard.name}, row", shard.start, format_field(field, source_columns[field]), field in shard.labels
        )
        if table.num_rows and find_item_type(column.type) and not is_tensor(column.type):
            try:
                field_columns[field] = to_tensors(column)[0]
            except Ragged as error:
                raise BadData(f"{shard.name}: {field} has {error}: pad them to one length") from error
    for field, item in shard.items:
        if field in field_columns:
            field_columns[field] = _cast_item(field_columns[field], item, field, shard)
    for field, texts in shard.maps:
        field_columns[field], absent = find_indices(field_columns[field], texts)
        if absent is not None:
            raise BadData(f"{shard.name}: {field} is {absent!r}, which is not one of its {len(texts)} classes")
    return pa.table(field_columns)


def _cast_item(column: pa.ChunkedArray, item: str, field: str, shard: Shard) -> pa.ChunkedArray:
    title = format_field(field, dict(shard.columns)[field])
    try:
        return to_item(column, item)
    except NotExact as error:
        raise BadData(f"{shard.name}: {title} is {error}: {describe_remedy(field, column.type)}") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        why = f"{describe_type(column.type)}, not {item}: {get_first_line(error)}"
        raise BadData(f"{shard.name}: {title} is {why}: {describe_remedy(field)}") from error


def iterate_columns(files: Mapping[str, Path], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield columns of all files, one row group at a time."""
    for name, path in sorted(files.items()):
        with convert_reader_errors(name), open_parquet(path, name) as file:
            _refuse_expansion(path, file, columns, name)
            for group in range(file.metadata.num_row_groups):
                table = file.read_row_group(group, list(columns))
                yield pa.table({column: _get_column(table, column) for column in columns})


def refuse_missing(files: Mapping[str, Path], column: str, title: str) -> None:
    """Raise `BadData` for the first row with null in this column, or in a list in it."""
    for name, path in sorted(files.items()):
        with open_parquet(path, name) as file:
            start = 0
            for group in range(file.metadata.num_row_groups):
                table = file.read_row_group(group, [column])
                _refuse_missing(_get_column(table, column), f"{name}, row", start, title, True)
                start += table.num_rows


def _refuse_missing(column: pa.ChunkedArray, where: str, start: int, title: str, label: bool) -> None:
    missing = find_missing(column, nan=not label)
    if missing.any():
        raise BadData(f"{where} {start + int(missing.argmax()) + 1}: {describe_missing(title)}")


def _has_column(column: str, schema: pa.Schema) -> bool:
    """Whether there is a column with this name, or a structure's field ("image.bytes")."""
    top, _, child = column.partition(".")
    if column in schema.names or top not in schema.names or not child:
        return column in schema.names
    kind = schema.field(top).type
    return child in [kind.field(index).name for index in range(kind.num_fields)]


def _get_column(table: pa.Table, column: str) -> pa.ChunkedArray:
    top, _, child = column.partition(".")
    return table[column] if column in table.column_names else pc.struct_field(table[top], child)


def _refuse_expansion(path: Path, file: pq.ParquetFile, columns: Iterable[str], name: str) -> None:
    def reopen(texts: list[str]) -> pq.ParquetFile:
        return pq.ParquetFile(path, metadata=file.metadata, read_dictionary=texts)

    refuse_expansion(reopen, file.metadata, columns, path.stat().st_size, name)


def open_parquet(path: Path, name: str) -> pq.ParquetFile:
    """Open a Parquet file. Raises `BadData` if it is not one."""
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise BadData(f"{name}: not a readable Parquet file: {get_first_line(error)}") from error
