"""Conversion of cells to a field's type, as the source's schema gives it; errors name the line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition, shorten_list
from ...splits.schema import Field
from ._arrow_types import NotExact, describe_remedy, to_item
from ._cells import Cells
from ._tensors import Ragged, find_item_type, to_tensors

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
        texts = [None if value is None else _format_json(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    return to_item(column, "string")


def _format_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def map_values(cells: Cells, column: pa.ChunkedArray, meaning: Mapping[str, Any] | Levels, title: str) -> pa.Array:
    """Map each cell to its value in a mapping, or to its index in a list (whose items are texts, or lists of texts with
    the same meaning). Raises `BadData` for a cell that is not in it."""
    if isinstance(meaning, list):
        known: dict[str, Any] = {
            text: position
            for position, level in enumerate(meaning)
            for text in ([level] if isinstance(level, str) else level)
        }
    else:
        known = dict(meaning)
    column = to_text(column)
    indices = pc.index_in(column, pa.array(list(known), pa.string()))
    if indices.null_count:
        index = pc.index(indices.is_null(), True).as_py()
        raise cells.wrong(
            index, f"{title} is {column[index].as_py()!r}, which is not one of {shorten_list(list(map(repr, known)))}"
        )
    return pa.array(list(known.values())).take(indices.combine_chunks())


def find_indices(column: pa.ChunkedArray, texts: Sequence[str]) -> tuple[pa.ChunkedArray, str | None]:
    """Return the index of each text in `texts`, and the first text that is not in it, or None."""
    text_column = to_text(column)
    places = pc.index_in(text_column, pa.array(list(texts), pa.string()))
    absent = text_column.filter(pc.and_(places.is_null(), text_column.is_valid()))
    return places, absent[0].as_py() if len(absent) else None


def parse_numbers(
    cells: Cells, column: pa.ChunkedArray, title: str, decimal: str = ".", rounded: bool = False
) -> NDArray[np.float64]:
    """Convert cells to float64. Raises `BadData` with the line of a cell that is not a number or, unless `rounded`, is
    not exact in float64."""
    values: NDArray[np.float64] = _cast_column(cells, column, "float64", title, decimal, rounded).to_numpy()
    return values


def convert_field(cells: Cells, columns: list[pa.ChunkedArray], field: Field, title: str, decimal: str = ".") -> Any:
    """Convert one column, or several for a tensor, to a field's values. Numbers with too many digits for float64 are
    rounded. Raises `BadData` with the line of a cell that is not valid."""
    if len(columns) > 1 or (field.shape and not _is_nested(columns[0])):
        return _make_tensor(cells, columns, field, title, decimal)
    if field.shape:
        try:
            return to_tensors(columns[0])[0] if find_item_type(columns[0].type) else columns[0]
        except Ragged as error:
            raise cells.wrong(0, f"{title} has, from this row on, {error}: pad them to one length") from error
    if len(columns) != 1:
        raise BadDefinition(f"the field {field.name!r} has no column")
    return _cast_column(cells, columns[0], field.item, title, decimal, rounded=True)


def _is_nested(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_nested(column.type))


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
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(cast_values).ravel()), size)


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
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        # Prefixes, since cells are converted together.
        if _try_convert(column.slice(0, middle), item, rounded)[1] is None:
            low = middle
        else:
            high = middle
    return low


def repeat_value(value: Any, rows: int) -> pa.Array:
    """Repeat a value for each row."""
    if not isinstance(value, bool | int | float | str):
        raise BadData(f"{value!r} is not a value for a field")
    return pa.repeat(pa.scalar(value), rows)
