"""Conditions of rules: rows whose fields have one of the given values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition
from ..measures.words import format_names, read_names_column

if TYPE_CHECKING:
    import pyarrow as pa

Conditions = Mapping[str, Sequence[str | int]]
"""The allowed values of each field."""


def match_conditions(table: pa.Table, conditions: Conditions) -> NDArray[np.bool_]:
    """Return whether each row meets every condition, shape (rows,); `BadDefinition` for a value that no row has."""
    import pyarrow as pa
    import pyarrow.compute as pc

    met = np.ones(table.num_rows, bool)
    for field, listed in conditions.items():
        column, values = read_names_column(table, field), format_names(listed)
        if absent := sorted(set(values) - set(pc.unique(column).to_pylist())):
            raise BadDefinition(f"no row has {field} = {', '.join(absent)}")
        met &= pc.is_in(column, value_set=pa.array(values, column.type)).to_numpy(zero_copy_only=False)
    return met
