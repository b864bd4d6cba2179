"""Feature vectors of inputs for the linear measures: cheap, of bounded size, the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits
from ..measures.divergence import split_words
from ..schema import Field
from .parted import PartedRows

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 5_000
"""The most rows of a part that a linear measure uses, drawn by row id."""

_RIDGE = 1e-2

Matrix = NDArray[np.float64]
Places = NDArray[np.int64]


def list_numeric_fields(rows: PartedRows) -> list[Field]:
    """Return the input fields that are numbers or tensors of numbers."""
    return [field for field in rows.schema.of_role("input") if field.item not in ("string", "bytes", "bool")]


def compute_features(rows: PartedRows, places: Places, columns: int) -> Matrix | None:
    """Return features of the rows at `places`, shape (rows, at most `columns` per input): numbers unchanged, texts as
    word counts. None if the inputs are neither.

    An input with more numbers or distinct words than `columns` is hashed: each is added to a random column with a
    random sign (Weinberger et al. 2009, Feature hashing for large scale multitask learning).
    """
    table = rows.table.take(places)
    blocks = [_encode_numbers(table, field, columns) for field in list_numeric_fields(rows)]
    blocks += [
        _encode_words(table[field.name], columns) for field in rows.schema.of_role("input") if field.type == "string"
    ]
    return np.concatenate(blocks, axis=1) if blocks else None


def _encode_numbers(table: pa.Table, field: Field, columns: int) -> Matrix:
    import pyarrow.compute as pc

    column = table[field.name].combine_chunks()
    flat = pc.list_flatten(column) if field.shape else column
    values = flat.to_numpy(zero_copy_only=False).astype(np.float64).reshape(table.num_rows, -1)
    if values.shape[1] <= columns:
        return np.asarray(values)
    joined, signs = _hash_columns(values.shape[1], columns)
    order = np.argsort(joined, kind="stable")
    first = np.unique(joined[order], return_index=True)[1]
    return np.asarray(np.add.reduceat(values[:, order] * signs[order], first, axis=1))


def _encode_words(texts: pa.ChunkedArray, columns: int) -> Matrix:
    units = split_words(texts)
    joined, signs = _hash_columns(units.kinds, columns)
    width = min(units.kinds, columns)
    cell = units.row * width + joined[units.code]
    return np.asarray(np.bincount(cell, signs[units.code], units.rows * width), np.float64).reshape(units.rows, width)


def _hash_columns(kinds: int, columns: int) -> tuple[Places, Matrix]:
    """Return the hashed column and the sign of each of `kinds`, both of shape (kinds,)."""
    if kinds <= columns:
        return np.arange(kinds), np.ones(kinds)
    drawn = draw_bits("audit/features", np.arange(kinds, dtype=np.uint64))
    # The highest bit is independent of the lowest, which choose the column.
    return (drawn % np.uint64(columns)).astype(np.int64), np.where(drawn >> np.uint64(63), 1.0, -1.0)


def fit_ridge(inputs: Matrix, targets: Matrix) -> Callable[[Matrix], Matrix]:
    """Fit ridge regression on standardised inputs (n, d) and targets (n, k); return a function from inputs (m, d) to
    scores (m, k)."""
    centre, spread = inputs.mean(0), inputs.std(0)
    # A constant column carries no information; its rounding error must not become its scale.
    spread = np.where(spread > 1e-9 * (1 + np.abs(centre)), spread, np.inf)

    def design(values: Matrix) -> Matrix:
        return np.concatenate([(values - centre) / spread, np.ones((len(values), 1))], axis=1)

    known = design(inputs)
    gram = known.T @ known + _RIDGE * len(known) * np.eye(known.shape[1])
    weights = np.linalg.solve(gram, known.T @ targets)
    return lambda values: np.asarray(design(values) @ weights)
