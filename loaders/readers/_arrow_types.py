"""Field types for the types of Arrow and Parquet, exact conversion of columns to them, and columns of tensors."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...splits.measures.words import convert_to_utc

NO_VALUES = "null"
"""The type of a column without any value."""

_EXACT = 2**53
"""Whole numbers below this are exact in float64."""
_WIDER = {frozenset({"int64", "float64"}): "float64", frozenset({"uint8[]", "int64[]"}): "int64[]"}
_MEANING = {"timestamp": "timestamp (whole microseconds)"}
_TICKS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


class NotExact(ValueError):
    """A value that the field's type cannot represent exactly; `index` is its index in the column."""

    def __init__(self, index: int, value: str, kind: str, item: str) -> None:
        super().__init__(f"{value} ({kind}), which {_MEANING.get(item, item)} cannot represent exactly")
        self.index = index


def to_stored_type(kind: pa.DataType) -> pa.DataType:
    """Return a type without dictionary encoding, views, 64-bit offsets and extension types."""
    if isinstance(kind, pa.BaseExtensionType):
        return to_stored_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return to_stored_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return kind


def to_stored_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column to its `to_stored_type`."""
    if isinstance(column.type, pa.BaseExtensionType):
        return to_stored_column(column.cast(column.type.storage_type))
    if pa.types.is_dictionary(column.type):
        values = to_stored_type(column.type.value_type)
        chunks = [chunk.dictionary.cast(values).take(chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(chunks, values)
    return column.cast(to_stored_type(column.type))


def infer_field_type(kind: pa.DataType) -> str:
    """Return the type of the field that a column becomes: `NO_VALUES` for a column of nulls, "" for a type without a
    scalar field type (tensors and files: see `find_item_type` and `has_encoded_files`)."""
    kind = to_stored_type(kind)
    if pa.types.is_decimal(kind):
        return "float64" if kind.scale > 0 else "int64"
    for test, name in (
        (pa.types.is_null, NO_VALUES),
        (pa.types.is_boolean, "bool"),
        (pa.types.is_integer, "int64"),
        (pa.types.is_floating, "float64"),
        (pa.types.is_timestamp, "timestamp"),
        (pa.types.is_date, "timestamp"),
        (pa.types.is_string, "string"),
        (pa.types.is_binary, "bytes"),
    ):
        if test(kind):
            return name
    return ""


def has_encoded_files(kind: pa.DataType) -> bool:
    """Whether a column holds encoded files in the form of the Hugging Face Hub: a structure of bytes and path."""
    return pa.types.is_struct(kind) and {field.name for field in kind} == {"bytes", "path"}


def find_common_type(kinds: Iterable[str]) -> str:
    """Return a type that can represent the values of columns of several types; "" if there is none."""
    known = frozenset(kinds) - {NO_VALUES} or frozenset({NO_VALUES})
    return _WIDER.get(known, "") if len(known) > 1 else min(known)


def describe_type(kind: pa.DataType) -> str:
    """Return a short description of an Arrow type."""
    return " ".join(str(kind).split())[:60]


def describe_remedy(field: str, kind: pa.DataType | None = None) -> str:
    """Suggest options for a field whose column has no exact field type."""
    text = f'read it as text with types = {{ {field} = "string" }}'
    if kind is None:
        return text
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        return f'{text}, or as seconds with "float64"'
    if pa.types.is_decimal(kind) or pa.types.is_integer(kind):
        return f'{text}, or rounded with "float64"'
    return text


def to_item(column: pa.ChunkedArray, item: str, rounded: bool = False) -> pa.ChunkedArray:
    """Convert a column to a field's item type: exactly, or with `rounded` to the nearest float64.
    Durations and times of day become seconds. Raises `NotExact` for a value that the type cannot represent, and
    `pyarrow.ArrowInvalid` or `ArrowNotImplementedError` for a value of another kind."""
    column = to_stored_column(column)
    kind = column.type
    if pa.types.is_duration(kind) or (pa.types.is_time(kind) and item in ("int64", "float64")):
        return to_item(_format_seconds(column), item, rounded)
    if item == "string":
        return column.cast(pa.string())
    if item == "bytes":
        return column.cast(pa.binary())
    if item == "bool" and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        numbers = pc.is_in(column, pa.array([0, 1], kind))
        _refuse_first(column, pc.invert(pc.or_kleene(numbers, column.is_null())), item)
    if item == "timestamp" and (pa.types.is_temporal(kind) or pa.types.is_string(kind)):
        return _to_times(column)
    if item == "float64" and (pa.types.is_decimal(kind) or pa.types.is_integer(kind)):
        return _to_float(column, rounded)
    if item in ("int64", "uint64") and (pa.types.is_decimal(kind) or pa.types.is_integer(kind)):
        return _to_integer(column, item)
    return column.cast({"bool": pa.bool_(), "timestamp": pa.timestamp("us")}.get(item) or getattr(pa, item)())


def _to_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return convert_to_utc(column)
    except pa.ArrowInvalid:
        if not pa.types.is_timestamp(column.type):
            raise
        microseconds = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        _refuse_first(column, pc.not_equal(microseconds.cast(column.type, safe=False), column), "timestamp")
        raise


def _to_float(column: pa.ChunkedArray, rounded: bool) -> pa.ChunkedArray:
    """Convert decimals and whole numbers to the nearest float64. A decimal is exact if its digits can be recovered, as
    they always can for up to 15 digits."""
    if pa.types.is_decimal(column.type):
        floats = column.cast(pa.string()).cast(pa.float64())  # Arrow's own cast does not round to the nearest
        large = column if column.type.precision > 15 else column[:0]
    else:
        floats = column.cast(pa.float64(), safe=False)
        large = column.filter(pc.greater_equal(pc.abs(floats), _EXACT))
    if not rounded:
        for value in pc.unique(large.drop_null()).to_pylist():
            if Decimal(repr(float(value))) != value:
                raise NotExact(
                    pc.index(column, pa.scalar(value, column.type)).as_py(),
                    str(value),
                    describe_type(column.type),
                    "float64",
                )
    return floats


def _to_integer(column: pa.ChunkedArray, item: str) -> pa.ChunkedArray:
    target = getattr(pa, item)()
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        low, high = (-(2**63), 2**63) if item == "int64" else (0, 2**64)
        for index, value in enumerate(column.to_pylist()):
            if value is not None and not (low <= value < high and value == int(value)):
                raise NotExact(index, str(value), describe_type(column.type), item) from None
        raise


def _format_seconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Format durations or times of day as text, in seconds."""
    places = _TICKS[column.type.unit]
    ticks = column.cast(pa.int32() if pa.types.is_time32(column.type) else pa.int64()).to_pylist()
    texts = [None if count is None else f"{Decimal(count).scaleb(-places).normalize():f}" for count in ticks]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _refuse_first(column: pa.ChunkedArray, wrong: Any, item: str) -> None:
    index = pc.index(wrong, True).as_py()
    if index >= 0:
        raise NotExact(index, str(column[index]), describe_type(column.type), item)


def to_tensor_column(values: NDArray[Any]) -> pa.FixedSizeListArray:
    """Convert an array of shape (rows, ...) to a column of one tensor per row."""
    flat = np.ascontiguousarray(values).reshape(len(values), -1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])


_ITEMS = (("uint8", "is_uint8"), ("uint8", "is_boolean"), ("int64", "is_integer"), ("float32", "is_floating"))
"""The item type of a tensor for each Arrow type of the numbers in a list."""


def find_item_type(kind: pa.DataType) -> str:
    """Return the item type of the tensors in a column of lists of numbers, nested or not; "" for another column."""
    nested = False
    while is_list(kind):
        kind, nested = kind.value_type, True
    return next((item for item, test in _ITEMS if nested and getattr(pa.types, test)(kind)), "")


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def to_tensors(column: pa.ChunkedArray) -> tuple[pa.FixedSizeListArray, tuple[int, ...]]:
    """Convert a column of lists of numbers, nested or not, to one tensor per row; return it and the tensors' shape.
    Raises `Ragged` if the lists of one depth differ in length."""
    values, shape, rows = pa.concat_arrays(column.chunks) if column.num_chunks else None, [], len(column)
    while values is not None and is_list(values.type):
        lengths = pc.unique(pc.list_value_length(values)).to_pylist()
        if len(lengths) > 1 or values.null_count:
            raise Ragged(sorted(length for length in lengths if length is not None))
        shape.append(lengths[0] if lengths else 0)
        values = values.flatten()
    if values is None or values.null_count or not rows:
        raise Ragged([])
    values = values.cast(pa.uint8()) if pa.types.is_boolean(values.type) else values
    size = len(values) // rows
    return pa.FixedSizeListArray.from_arrays(values, size), tuple(shape)


class Ragged(ValueError):
    """Lists that are not tensors, because their lengths differ or values are missing."""

    def __init__(self, lengths: list[int]) -> None:
        super().__init__(
            f"lists of {lengths[0]} to {lengths[-1]} values" if len(lengths) > 1 else "lists with missing values"
        )
