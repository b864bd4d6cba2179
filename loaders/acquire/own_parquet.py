"""Plan how the user's own Parquet files are read: with types that fit their columns in all files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadDefinition
from ...splits.schema import Field, Schema
from ..readers import parquet
from ..readers._arrow_types import describe_remedy, loses_precision, to_stored_column
from ..readers._missing import format_field
from ..readers._tensors import Ragged, to_tensors
from ..readers._typed import to_text
from ..readers.parquet import open_parquet
from .own_data import Data, Plan, explain_text_labels, make_class_maps
from .own_types import ENCODED, LISTS, detect_media, report_precision_loss, settle_type
from .type_inference import TypeInference

if TYPE_CHECKING:
    import pyarrow as pa


def plan_parquet(data: Data, files: dict[str, Path]) -> Plan:
    """Plan how Parquet is read. Text labels become classes if they look like classes."""
    schema, field_columns = _read_schema(data.columns(), files)
    labels = [field.name for field in schema.of_role("label") if field.type == "string"]
    texts = {name: TypeInference() for name in dict.fromkeys([*labels, *data.classes])}
    for name in data.classes:
        if schema[name].shape or schema[name].item == "bytes":
            raise BadDefinition(
                f"[data] classes: {name!r} is {schema[name].type}: only texts and numbers can be classes"
            )
    if texts:
        for piece in parquet.iterate_columns(files, sorted({field_columns[field] for field in texts})):
            for field, guess in texts.items():
                try:
                    guess.look(to_text(to_stored_column(piece[field_columns[field]])))
                except UnicodeDecodeError as error:
                    raise BadDefinition(
                        f"[data] field {field!r} is not UTF-8: re-encode it, or store it as binary"
                    ) from error
    kinds = {field.name: field.type for field in schema.fields}
    maps = make_class_maps(data, texts, kinds)
    fields = tuple(replace(field, type="int64") if field.name in maps else field for field in schema.fields)
    options = {"columns": field_columns} | ({"maps": maps} if maps else {})
    return Plan("parquet", options, Schema(fields), explain_text_labels(data, texts, kinds))


def _read_schema(
    columns: Mapping[str, tuple[str | list[str], str]], files: dict[str, Path]
) -> tuple[Schema, dict[str, str]]:
    """The fields, with types that hold the values of all files, and the column of each."""
    schemas: dict[str, pa.Schema] = {}
    for name, path in sorted(files.items()):
        with open_parquet(path, name) as file:
            schemas[name] = file.schema_arrow
    fields, field_columns = [], {}
    for name, (column, role) in columns.items():
        if not isinstance(column, str):
            raise BadDefinition(f"[data] the field {name!r} has several columns: for Parquet, use one column of lists")
        kinds = {file: _find_column_type(schema, column, file) for file, schema in schemas.items()}
        field_columns[name], kind = _resolve_field(name, column, kinds, files)
        fields.append(Field(name, kind, role))  # type: ignore[arg-type]
    return Schema(tuple(fields)), field_columns


def _find_column_type(schema: pa.Schema, column: str, file: str) -> pa.DataType:
    """The type of a column, or of a struct's field ("image.path")."""
    import pyarrow as pa

    if column in schema.names:
        return schema.field(column).type
    top, _, child = column.partition(".")
    kind = schema.field(top).type if top in schema.names else pa.null()
    if child and pa.types.is_struct(kind) and child in (names := [field.name for field in kind]):
        return kind.field(names.index(child)).type
    raise BadDefinition(f"[data] {file} has no column {column!r} (it has {', '.join(schema.names)})")


def _resolve_field(name: str, column: str, kinds: Mapping[str, pa.DataType], files: dict[str, Path]) -> tuple[str, str]:
    """The column from which a field is read, and the field's type."""
    import pyarrow as pa

    kind = settle_type(name, column, kinds)
    if kind == ENCODED:
        values = (
            piece[f"{column}.bytes"] for piece in parquet.iterate_columns(files, [f"{column}.bytes"]) if piece.num_rows
        )
        return f"{column}.bytes", detect_media(next(values, pa.chunked_array([], pa.binary())))
    if kind.endswith(LISTS):
        return column, f"{kind.removesuffix(LISTS)}[{','.join(map(str, _read_shape(name, files, column)))}]"
    return column, kind


def _read_shape(field: str, files: dict[str, Path], column: str) -> tuple[int, ...]:
    """The shape of a column's lists, the same in all rows."""
    shapes: dict[tuple[int, ...], str] = {}
    rounded = False
    try:
        for name, path in sorted(files.items()):
            for piece in parquet.iterate_columns({name: path}, [column]):
                if piece.num_rows:
                    lists = to_stored_column(piece[column])
                    shapes.setdefault(to_tensors(lists)[1], name)
                    rounded = rounded or loses_precision(lists)
        if len(shapes) > 1:
            raise Ragged(sorted(math.prod(shape) for shape in shapes))
    except Ragged as error:
        parquet.refuse_missing(files, column, format_field(field, column))
        raise BadDefinition(
            f"[data] {name}: column {column!r} has {error}, but a numeric field needs one shape: pad them to one "
            f"length, or {describe_remedy(field)}"
        ) from error
    if not shapes or 0 in (shape := min(shapes)):
        raise BadDefinition(f"[data] {min(files)}: column {column!r} has only empty lists: remove {field!r}")
    if rounded:
        report_precision_loss(field)
    return shape
