"""Rows of a table as stored in its file, their missing values, and their conversion to a field's type, as the source's
schema gives it. Errors name the line."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...core.documents import parse_messages
from ...core.errors import BadData, BadDefinition, shorten_list
from ...splits.schema import Field
from ._arrow_types import (
    NotExact,
    Ragged,
    describe_remedy,
    find_item_type,
    is_list,
    to_item,
    to_tensor_column,
    to_tensors,
)

Column = str | int
"""A column: its name, or its index from 0."""


@dataclass(frozen=True)
class Cells:
    """Some rows of one file. `names` are the file's columns; `table` has those that are read, each named by its index
    ("0", "1" ..), as text or with the file's own types; `rows` are the row numbers in the file, from 0; `locate` gives
    the location of a row ("line 7")."""

    name: str
    names: Sequence[str]
    table: pa.Table
    rows: NDArray[np.int64]
    locate: Callable[[int], str]

    def column(self, column: Column) -> pa.ChunkedArray:
        return self.table[str(find_column(self.names, column, self.name))]

    def filter_rows(self, which: NDArray[np.bool_]) -> Cells:
        """Keep the rows that the mask selects."""
        if which.all():
            return self
        return replace(self, table=self.table.filter(which), rows=self.rows[which])

    def with_columns(self, names: Sequence[str], columns: Sequence[pa.Array]) -> Cells:
        """Append columns."""
        table = self.table
        for number, column in enumerate(columns, len(self.names)):
            table = table.append_column(str(number), column)
        return replace(self, names=[*self.names, *names], table=table)

    def wrong(self, index: int, complaint: str) -> BadData:
        """Make an error for a row, with its file and line."""
        return BadData(f"{self.name}, {self.locate(int(self.rows[index]))}: {complaint}")


def find_column(names: Sequence[str], column: Column, where: str) -> int:
    """Return the index of a column (the first with that name). Raises `BadData` if there is none."""
    if isinstance(column, int):
        if not 0 <= column < len(names):
            raise BadData(f"{where} has no column {column}: it has {len(names)}, numbered from 0")
        return column
    try:
        return list(names).index(column)
    except ValueError:
        raise BadData(
            f"{where} has no column {column!r} (it has {shorten_list(list(names))}){_suggest_separator(names)}"
        ) from None


def _suggest_separator(names: Sequence[str]) -> str:
    """Suggest a separator if the only column looks like several."""
    mark = next((mark for mark in (";", "\t", "|", ",") if len(names) == 1 and mark in names[0]), "")
    return f": set the separator of its cells with options = {{ separator = {json.dumps(mark)} }}" if mark else ""


def find_columns(names: Sequence[str], spec: Any, where: str) -> list[int]:
    """Return the indices of a field's columns: one column, several, or all from `first` to `last`."""
    if isinstance(spec, dict):
        if set(spec) != {"first", "last"}:
            raise BadDefinition(f"{where}: a range of columns is {{ first = .., last = .. }}, not {spec}")
        first, last = (find_column(names, spec[end], where) for end in ("first", "last"))
        return list(range(first, last + 1))
    if isinstance(spec, list):
        return [find_column(names, column, where) for column in spec]
    return [find_column(names, spec, where)]


NAN = r"^\s*[+-]?(?i:nan)\s*$"
"""NaN as written in a column of numbers; in a column of text it is an ordinary word."""

_NO_ITEM = r"(?i)\b(?:nan|null)\b"
"""A missing item in a list of numbers that is written as text, such as JSON."""


def format_field(field: str, column: str | int) -> str:
    """Format a field for messages: its name, and its column if that has another name."""
    return field if column == field else f"{field} (column {column!r})"


def describe_missing(title: str) -> str:
    return f"{title} is missing: set `if_missing` to 'drop' or a value"


def find_missing(
    column: pa.ChunkedArray, texts: Sequence[str] = (), *, numeric: bool = False, tensor: bool = False, nan: bool = True
) -> NDArray[np.bool_]:
    """Return a mask (rows,) of the missing values of a column: null, NaN, lists with a missing item, and the values in
    `texts` (in columns of numbers, the numbers that they denote). numeric: text is read as numbers or truth values, so
    that "nan" is a missing value. tensor: text is read as lists of numbers. nan: whether NaN in a list is missing."""
    if is_list(column.type):
        return _find_in_lists(column, nan)
    kind, masks = column.type, [pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))]
    if pa.types.is_string(kind):
        masks += [pc.is_in(column, pa.array(texts, pa.string()))] if texts else []
        patterns = [NAN] * numeric + [_NO_ITEM] * (tensor and nan)
        masks += [pc.match_substring_regex(column, pattern).fill_null(False) for pattern in patterns]
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        masks += [pc.equal(column, value).fill_null(False) for value in _parse_numbers(texts, kind)]
    elif texts and not (pa.types.is_nested(kind) or pa.types.is_binary(kind)):
        masks.append(pc.is_in(to_text(column), pa.array(texts, pa.string())))
    missing: NDArray[np.bool_] = np.logical_or.reduce([mask.to_numpy(zero_copy_only=False) for mask in masks])
    return missing


def _find_in_lists(column: pa.ChunkedArray, nan: bool) -> NDArray[np.bool_]:
    """Return a mask of the lists, nested or not, that are missing or have a missing item at any depth."""
    missing = np.zeros(len(column), bool)
    start = 0
    for chunk in column.chunks:
        values = chunk
        parents: list[pa.Array] = []
        while True:
            floating = nan and pa.types.is_floating(values.type)
            if values.null_count or floating:
                places = np.flatnonzero(pc.is_null(values, nan_is_null=floating).to_numpy(zero_copy_only=False))
                for step in reversed(parents):
                    places = pc.list_parent_indices(step).to_numpy()[places]
                missing[start + places] = True
            if not is_list(values.type):
                break
            parents.append(values)
            values = pc.list_flatten(values)
        start += len(chunk)
    return missing


def _parse_numbers(texts: Sequence[str], kind: pa.DataType) -> list[pa.Scalar]:
    """Convert the texts that are valid values of a numeric type to that type."""
    scalars = []
    for text in texts:
        try:
            number = float(text) if pa.types.is_floating(kind) else int(text)
            scalars.append(pa.scalar(number).cast(kind))
        except (ValueError, OverflowError, pa.ArrowNotImplementedError):  # ArrowInvalid is a ValueError
            continue
    return scalars


_EXACT = 2**53
"""Whole numbers below this are exact in float64."""


def is_carried(number: str) -> bool:
    """Whether a whole number in digits (perhaps with zeros after a decimal point) is exact in float64 and int64."""
    digits = number.partition(".")[0]
    return len(digits) <= 20 and int(float(digits)) == int(digits) and -(2**63) <= int(digits) < 2**63


Levels = list[str | list[str]]

_WHAT = {
    "int64": "a whole number",
    "uint64": "a whole number of 0 or more",
    "float64": "a number",
    "bool": "true or false",
    "string": "text",
    "bytes": "bytes",
    "timestamp": "a time such as 2024-05-31 or 2024-05-31T12:30:00Z",
}


def to_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column to text; lists and structures become JSON."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_nested(kind):
        encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
        texts = [None if value is None else encode(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    return to_item(column, "string")


def index_levels(meaning: Mapping[str, Any] | Levels) -> Mapping[str, Any]:
    """Return the value of each text: as given, or its index in a list (whose items are texts, or lists of texts with
    the same meaning)."""
    if isinstance(meaning, Mapping):
        return meaning
    levels = [[level] if isinstance(level, str) else level for level in meaning]
    return {text: index for index, level in enumerate(levels) for text in level}


def map_values(cells: Cells, column: pa.ChunkedArray, meaning: Mapping[str, Any] | Levels, title: str) -> pa.Array:
    """Map each cell to its value; see `index_levels`. Raises `BadData` for a cell without one."""
    known, column = index_levels(meaning), to_text(column)
    indices = pc.index_in(column, pa.array(list(known), pa.string()))
    if indices.null_count:
        index = pc.index(indices.is_null(), True).as_py()
        raise cells.wrong(
            index, f"{title} is {column[index].as_py()!r}, which is not one of {shorten_list(list(map(repr, known)))}"
        )
    return pa.array(list(known.values())).take(indices.combine_chunks())


def parse_numbers(cells: Cells, column: pa.ChunkedArray, title: str, decimal: str) -> NDArray[np.float64]:
    """Convert cells to float64. Raises `BadData` with the line of a cell that is not a number, or not exact in
    float64."""
    values: NDArray[np.float64] = _cast_column(cells, column, "float64", title, decimal, rounded=False).to_numpy()
    return values


def convert_field(cells: Cells, columns: list[pa.ChunkedArray], field: Field, title: str, decimal: str = ".") -> Any:
    """Convert one column, or several for a tensor, to a field's values. Numbers with too many digits for float64 are
    rounded. Raises `BadData` with the line of a cell that is not valid."""
    if len(columns) > 1 or (field.shape and not pa.types.is_nested(columns[0].type)):
        return _make_tensor(cells, columns, field, title, decimal)
    if field.shape:
        try:
            return to_tensors(columns[0])[0] if find_item_type(columns[0].type) else columns[0]
        except Ragged as error:
            raise cells.wrong(0, f"{title} has, from this row on, {error}: pad them to one length") from error
    if len(columns) != 1:
        raise BadDefinition(f"the field {field.name!r} has no column")
    values = _cast_column(cells, columns[0], field.item, title, decimal, rounded=True)
    if field.type == "messages":
        for index, text in enumerate(values.to_pylist()):
            if parse_messages(text) is None:
                raise cells.wrong(index, f"{title} is not a chat, a list of {{ role, content }}: {text[:40]!r}")
    return values


def _make_tensor(cells: Cells, columns: list[pa.ChunkedArray], field: Field, title: str, decimal: str) -> pa.Array:
    """Make one tensor per row: from one column per number, or from one column of numbers separated by spaces or
    commas."""
    size = int(np.prod(field.shape))
    if not field.shape:
        raise BadDefinition(f"the field {field.name!r} is {field.type}, but has {len(columns)} columns")
    if len(columns) == 1 and size > 1:
        values = _split_numbers(cells, columns[0], size, title)
    elif len(columns) == size:
        item, rounded = ("float64", True) if field.item == "float32" else ("int64", False)
        values = np.column_stack(
            [_cast_column(cells, column, item, title, decimal, rounded).to_numpy() for column in columns]
        )
    else:
        raise BadDefinition(f"the field {field.name!r} has {size} numbers per row, but {len(columns)} columns")
    with np.errstate(invalid="ignore"):
        cast_values = values.astype(field.item)
    inexact = values.dtype == np.float64 and field.item == "int64" and (np.abs(values) >= _EXACT)
    if field.item != "float32" and (wrong := (cast_values != values) | inexact).any():
        index = int(np.flatnonzero(wrong.any(axis=1))[0])
        raise cells.wrong(index, f"{title} has a value that does not fit {field.item}")
    return to_tensor_column(cast_values)


def _split_numbers(cells: Cells, column: pa.ChunkedArray, size: int, title: str) -> NDArray[np.float64]:
    plain = pc.replace_substring_regex(to_text(column), r"[\[\](),;\s]+", " ")
    lists = pc.split_pattern(pc.utf8_trim_whitespace(plain), " ").combine_chunks()
    lengths = pc.list_value_length(lists)
    if len(wrong := np.flatnonzero(lengths.to_numpy() != size)):
        raise cells.wrong(int(wrong[0]), f"{title} has {lengths[int(wrong[0])]} numbers, not {size}")
    try:
        flat = pc.list_flatten(lists).cast(pa.float64())
    except pa.ArrowInvalid:
        for index, row in enumerate(lists):
            try:
                row.values.cast(pa.float64())
            except pa.ArrowInvalid:
                raise cells.wrong(index, f"{title} has a value that is not a number") from None
        raise
    values: NDArray[np.float64] = flat.to_numpy().reshape(-1, size)
    return values


def _cast_column(cells: Cells, column: pa.ChunkedArray, item: str, title: str, decimal: str, rounded: bool) -> Any:
    if item == "string" and pa.types.is_nested(column.type):
        return to_text(column)
    if decimal != "." and pa.types.is_string(column.type) and item not in ("string", "bytes"):
        column = pc.replace_substring(column, decimal, ".")
    result, refused = _try_convert(column, item, rounded)
    if refused is None:
        return result
    if isinstance(refused, NotExact):
        raise cells.wrong(
            refused.index, f"{title} is {refused}: {describe_remedy(title.split()[0], column.type)}"
        ) from refused
    index = _find_first_wrong(column, item, rounded)
    raise cells.wrong(index, f"{title} is {column[index].as_py()!r}, not {_WHAT[item]}") from refused


def _try_convert(column: pa.ChunkedArray, item: str, rounded: bool) -> tuple[Any, Exception | None]:
    """Convert a column to a field's item type; return it and None, or None and the error. Whole numbers may be written
    as 3.0 (common in columns with missing numbers), if they are exact in float64."""
    try:
        return to_item(column, item, rounded), None
    except (NotExact, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        refused: Exception = error
    if item not in ("int64", "uint64") or not pa.types.is_string(column.type):
        return None, refused
    try:
        wide = column.cast(pa.float64())
        exact = pc.all(pc.less(pc.abs(wide), _EXACT)).as_py()
        return (wide.cast(getattr(pa, item)()), None) if exact else (None, refused)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        return None, error


def _find_first_wrong(column: pa.ChunkedArray, item: str, rounded: bool) -> int:
    """Return the index of the first cell that cannot be converted, by bisection over prefixes of the column. This also
    finds the first of two cells that only conflict with each other (3.0, and a number too large for float64)."""

    def fails_with(index: int) -> bool:
        return _try_convert(column.slice(0, index + 1), item, rounded)[1] is not None

    return bisect_left(range(len(column)), True, key=fails_with)


def repeat_value(value: Any, rows: int) -> pa.Array:
    """Repeat a value for each row."""
    if not isinstance(value, bool | int | float | str):
        raise BadData(f"{value!r} is not a value for a field")
    return pa.repeat(pa.scalar(value), rows)
