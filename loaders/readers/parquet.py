"""Parquet: fields from columns of the same or another name; large files piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData, first_line
from ...splits.schema import Schema
from ..files.damage import convert_reader_errors
from ._arrow_types import NotExact, describe_type, plain, remedy, to_item
from ._missing import describe_missing, find_missing, format_field
from ._tensors import Ragged, is_tensor, item_of, tensors
from ._typed import place_among

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS = 1 << 18
"""The rows of a shard, at least, where its row groups are smaller."""


@dataclass(frozen=True)
class Shard:
    """Row groups [first, last) of one file, from the row `start` on; `columns` gives each field's column, `maps` the
    texts of a field whose values are their places, `items` what the values of a field that is no tensor are. labels:
    fields whose lists may hold NaN, where one is not known."""

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
    """The fields that `columns` names, each from its column, of all files in the order of their names. `maps`: a
    field's texts, whose places are its values. `BadData` names the row where one is missing (null or NaN)."""
    import pyarrow as pa

    found = [read_shard(shard) for shard in shards(files, columns=columns, maps=maps, schema=schema)]
    if not found:
        raise BadData(f"{', '.join(sorted(files))} {'has' if len(files) == 1 else 'have'} no rows")
    return pa.concat_tables(found)


def shards(
    files: Mapping[str, Path],
    *,
    columns: dict[str, str],
    maps: dict[str, list[str]] | None = None,
    schema: Schema | None = None,
) -> list[Shard]:
    """The rows of all files in pieces that are read apart."""
    labels = tuple(field.name for field in schema.of_role("label")) if schema else ()
    scalars = [field for field in schema.fields if not field.shape and field.name not in (maps or {})] if schema else []
    items = tuple((field.name, field.item) for field in scalars)
    meanings = tuple((field, tuple(texts)) for field, texts in sorted((maps or {}).items()))
    found = []
    for name, path in sorted(files.items()):
        with convert_reader_errors(name), opened(path, name) as file:
            absent = sorted(column for column in set(columns.values()) if not _there(column, file.schema_arrow))
            if absent:
                raise BadData(f"{name} has no column {', '.join(absent)} (it has {', '.join(file.schema_arrow.names)})")
            counts = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
        fields = tuple(sorted(columns.items()))
        first = rows = start = 0
        for group, count in enumerate(counts):
            rows += count
            if rows >= _ROWS or group + 1 == len(counts):
                found.append(Shard(path, name, first, group + 1, fields, meanings, items, start, labels))
                first, rows, start = group + 1, 0, start + rows
    return found


def read_shard(shard: Shard) -> pa.Table:
    """The rows of one shard."""
    import pyarrow as pa

    wanted = dict(shard.columns)
    where = f"{shard.name}: row groups {shard.first} to {shard.last - 1}"
    with convert_reader_errors(where), opened(shard.path, shard.name) as file:
        try:
            table = file.read_row_groups(range(shard.first, shard.last), sorted(set(wanted.values())))
        except OSError as error:
            raise BadData(f"{where} cannot be read: {first_line(error)}") from error
    made = {field: plain(_column(table, column)) for field, column in wanted.items()}
    for field, column in made.items():
        _refuse_missing(
            column, f"{shard.name}, row", shard.start, format_field(field, wanted[field]), field in shard.labels
        )
        if table.num_rows and item_of(column.type) and not is_tensor(column.type):
            try:
                made[field] = tensors(column)[0]
            except Ragged as error:
                raise BadData(f"{shard.name}: {field} has {error}: pad them to one length") from error
    for field, item in shard.items:
        if field in made:
            made[field] = _as_item(made[field], item, field, shard)
    for field, texts in shard.maps:
        made[field], absent = place_among(made[field], texts)
        if absent is not None:
            raise BadData(f"{shard.name}: {field} is {absent!r}, which is none of its {len(texts)} classes")
    return pa.table(made)


def _as_item(column: pa.ChunkedArray, item: str, field: str, shard: Shard) -> pa.ChunkedArray:
    import pyarrow as pa

    title = format_field(field, dict(shard.columns)[field])
    try:
        return to_item(column, item)
    except NotExact as error:
        raise BadData(f"{shard.name}: {title} is {error}: {remedy(field, column.type)}") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        why = f"{describe_type(column.type)}, and not {item}: {first_line(error)}"
        raise BadData(f"{shard.name}: {title} is {why}: {remedy(field)}") from error


def values(files: Mapping[str, Path], columns: Sequence[str]) -> Iterator[pa.Table]:
    """These columns of all files, a row group each time."""
    import pyarrow as pa

    for name, path in sorted(files.items()):
        with convert_reader_errors(name), opened(path, name) as file:
            for group in range(file.metadata.num_row_groups):
                table = file.read_row_group(group, list(columns))
                yield pa.table({column: _column(table, column) for column in columns})


def refuse_missing(files: Mapping[str, Path], column: str, title: str) -> None:
    """`BadData` with the first row that has null in this column, or in a list of it."""
    for name, path in sorted(files.items()):
        with opened(path, name) as file:
            start = 0
            for group in range(file.metadata.num_row_groups):
                table = file.read_row_group(group, [column])
                _refuse_missing(_column(table, column), f"{name}, row", start, title, True)
                start += table.num_rows


def _refuse_missing(column: pa.ChunkedArray, where: str, start: int, title: str, label: bool) -> None:
    missing = find_missing(column, nan=not label)
    if missing.any():
        raise BadData(f"{where} {start + int(missing.argmax()) + 1}: {describe_missing(title)}")


def _there(column: str, schema: pa.Schema) -> bool:
    """Whether there is a column of this name, or a structure's field ("image.bytes")."""
    top, _, child = column.partition(".")
    if column in schema.names or top not in schema.names or not child:
        return column in schema.names
    kind = schema.field(top).type
    return child in [kind.field(place).name for place in range(kind.num_fields)]


def _column(table: pa.Table, column: str) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    top, _, child = column.partition(".")
    return table[column] if column in table.column_names else pc.struct_field(table[top], child)


def opened(path: Path, name: str) -> pq.ParquetFile:
    """A Parquet file; `BadData` where it is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise BadData(f"{name}: not a readable Parquet file: {first_line(error)}") from error
