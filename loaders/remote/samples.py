"""WebDataset samples into typed rows: `json` for scalars, `<field>.npy` for a tensor, `<field>.bin` for bytes.

The members are those that `loaders/export/webdataset.py` writes. A pickle is never read.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from tokenize import TokenError
from typing import TYPE_CHECKING, Any

import numpy as np

from ...splits.errors import BadData
from ...splits.schema import Field

if TYPE_CHECKING:
    import pyarrow as pa

Members = Sequence[bytes]
"""One member's content for each row."""

_ITEMS = {"uint8": "u1", "int64": "<i8", "float32": "<f4"}


def member(field: Field) -> str:
    """The extension of the member that holds a field."""
    if field.shape:
        return f"{field.name}.npy"
    return f"{field.name}.bin" if field.item == "bytes" else "json"


def rows(members: Mapping[str, Members], fields: Sequence[Field], place: Callable[[int], str]) -> pa.Table:
    """The rows' fields, typed; `members` by extension. `BadData` with the `place` of a row that is none."""
    import pyarrow as pa

    said = [_read(_object, place, row, content) for row, content in enumerate(members.get("json", ()))]
    columns: dict[str, Any] = {}
    for field in fields:
        if member(field) == "json":
            columns[field.name] = _scalars(field, said, place)
            continue
        contents = members[member(field)]
        if field.shape:
            header: list[bytes] = []
            parts = [_read(_tensor, place, row, content, field, header) for row, content in enumerate(contents)]
            flat = np.frombuffer(b"".join(parts), _ITEMS[field.item])
            columns[field.name] = pa.FixedSizeListArray.from_arrays(pa.array(flat), math.prod(field.shape))
        else:
            columns[field.name] = pa.array(contents, field.arrow())
    return pa.table(columns)


def _read(read: Callable[..., Any], place: Callable[[int], str], row: int, *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except (ValueError, SyntaxError, TokenError) as error:  # the header of an npy file is read as Python
        raise BadData(f"{place(row)}: the sample is damaged: {error}") from error


def _object(content: bytes) -> dict[str, Any]:
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("its json is no object")
    return found


def _scalars(field: Field, said: list[dict[str, Any]], place: Callable[[int], str]) -> pa.Array:
    import pyarrow as pa

    wrong = (pa.ArrowInvalid, pa.ArrowTypeError, KeyError, TypeError, OverflowError)

    def typed(objects: list[dict[str, Any]]) -> pa.Array:
        column = pa.array([item[field.name] for item in objects], field.arrow())
        if column.null_count:
            raise TypeError("null")
        return column

    try:
        return typed(said)
    except wrong:
        for row, item in enumerate(said):
            try:
                typed([item])
            except wrong as error:
                raise BadData(
                    f"{place(row)}: the sample is damaged: field {field.name!r} is no {field.type}"
                ) from error
        raise


def _tensor(content: bytes, field: Field, header: list[bytes]) -> bytes:
    """The elements of an npy file in C order, little-endian. `header` keeps the last header that was understood."""
    if header and content.startswith(header[0]):
        data = content[len(header[0]) :]
    else:
        values = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
        if values.shape != field.shape or values.dtype != np.dtype(_ITEMS[field.item]):
            raise ValueError(f"field {field.name!r} is {values.dtype}{list(values.shape)}, not {field.type}")
        data = np.ascontiguousarray(values, _ITEMS[field.item]).tobytes()
        if content.endswith(data):
            header[:] = [content[: len(content) - len(data)]]
    if len(data) != math.prod(field.shape) * np.dtype(_ITEMS[field.item]).itemsize:
        raise ValueError(f"field {field.name!r} has {len(data)} bytes of values, which are no {field.type}")
    return data
