"""Missing values: null, NaN and empty cells are treated alike in every format."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ._tensors import is_list
from ._typed import to_text

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
