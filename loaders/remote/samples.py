"""Decode WebDataset samples to typed rows: `json` for scalars, `<field>.npy` for a tensor, `<field>.bin` for bytes.

The members are those that `loaders/export/webdataset.py` writes. Pickles are never read.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import BadData, get_first_line
from ...splits.schema import Field
from .received import parse_json_object

if TYPE_CHECKING:
    import pyarrow as pa

Members = Sequence[bytes]
"""One member's content for each row."""

_ITEMS = {"uint8": "u1", "int64": "<i8", "float32": "<f4"}

_NO_HEADER = (ValueError, SyntaxError, TokenError, TypeError, LookupError, RecursionError, MemoryError)
"""The exceptions that NumPy raises for an invalid header, which it parses as Python."""


def name_member_extension(field: Field) -> str:
    """Return the extension of the member of a field."""
    if field.shape:
        return f"{field.name}.npy"
    return f"{field.name}.bin" if field.item == "bytes" else "json"


def decode_samples(members: Mapping[str, Members], fields: Sequence[Field], locate: Callable[[int], str]) -> pa.Table:
    """Decode the fields of rows; `members` by extension. Raises `BadData`, with `locate(row)`, for an invalid row."""
    import pyarrow as pa

    records = [
        _read_sample(parse_json_object, locate, row, content) for row, content in enumerate(members.get("json", ()))
    ]
    columns: dict[str, Any] = {}
    for field in fields:
        if name_member_extension(field) == "json":
            columns[field.name] = _make_scalar_column(field, records, locate)
            continue
        contents = members[name_member_extension(field)]
        if field.shape:
            header: list[bytes] = []
            parts = [
                _read_sample(_read_tensor, locate, row, content, field, header) for row, content in enumerate(contents)
            ]
            flat = np.frombuffer(b"".join(parts), _ITEMS[field.item])
            columns[field.name] = pa.FixedSizeListArray.from_arrays(pa.array(flat), math.prod(field.shape))
        else:
            columns[field.name] = pa.array(contents, field.arrow())
    return pa.table(columns)


def _read_sample(read: Callable[..., Any], locate: Callable[[int], str], row: int, *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except ValueError as error:
        raise BadData(f"{locate(row)}: the sample is damaged: {get_first_line(error)}") from error


def _make_scalar_column(field: Field, records: list[dict[str, Any]], locate: Callable[[int], str]) -> pa.Array:
    import pyarrow as pa

    wrong = (pa.ArrowInvalid, pa.ArrowTypeError, KeyError, TypeError, OverflowError, UnicodeEncodeError)

    def typed(objects: list[dict[str, Any]]) -> pa.Array:
        column = pa.array([item[field.name] for item in objects], field.arrow())
        if column.null_count:
            raise TypeError("null")
        return column

    try:
        return typed(records)
    except wrong:
        for row, item in enumerate(records):
            try:
                typed([item])
            except wrong as error:
                raise BadData(
                    f"{locate(row)}: the sample is damaged: field {field.name!r} is not {field.type}"
                ) from error
        raise


def _read_tensor(content: bytes, field: Field, header: list[bytes]) -> bytes:
    """The elements of an npy file in C order, little-endian. `header` caches the last valid header."""
    by_columns = False
    if header and content.startswith(header[0]):
        begin = len(header[0])
    else:
        by_columns, begin = _parse_npy_header(content, field)
        if not by_columns:
            header[:] = [content[:begin]]
    data = content[begin:]
    if len(data) != math.prod(field.shape) * np.dtype(_ITEMS[field.item]).itemsize:
        raise ValueError(f"field {field.name!r} has {len(data)} bytes of values, which do not fit {field.type}")
    return np.frombuffer(data, _ITEMS[field.item]).reshape(field.shape, order="F").tobytes() if by_columns else data


def _parse_npy_header(content: bytes, field: Field) -> tuple[bool, int]:
    """Whether an npy file of a field has Fortran order, and the byte at which its elements begin. NumPy does not read
    the values, since it would allocate as much memory as the header claims."""
    file = io.BytesIO(content)
    try:
        versions = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, by_columns, kind = versions[np.lib.format.read_magic(file)](file)
    except _NO_HEADER as error:
        raise ValueError(f"field {field.name!r} is not an npy file: {get_first_line(error)}") from error
    if shape != field.shape or kind != np.dtype(_ITEMS[field.item]):
        raise ValueError(f"field {field.name!r} is {kind}{list(shape)}, not {field.type}")
    return by_columns, file.tell()
