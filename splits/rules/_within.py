"""Limits of rules: rows whose numbers are at most the given values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..measures.words import read_numeric_column

if TYPE_CHECKING:
    import pyarrow as pa


def match_limits(table: pa.Table, limits: dict[str, int] | None) -> NDArray[np.bool_]:
    """Return whether each row has at most the given value of every named field, shape (rows,); all rows without
    limits."""
    met = np.ones(table.num_rows, bool)
    for field, most in (limits or {}).items():
        met &= read_numeric_column(table, field) <= most
    return met
