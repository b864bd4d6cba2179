"""Arrays as columns of tensors of a fixed shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


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


def is_tensor(kind: pa.DataType) -> bool:
    """Whether a column has the storage type of tensors."""
    return bool(pa.types.is_fixed_size_list(kind) and str(kind.value_type) in ("uint8", "int64", "float"))


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
