"""What rules share: rows that meet conditions or limits, and rows that are drawn for the in-distribution parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from ..measures.words import format_names, read_names_column, read_numeric_column

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


def match_limits(table: pa.Table, limits: dict[str, int] | None) -> NDArray[np.bool_]:
    """Return whether each row has at most the given value of every named field, shape (rows,); all rows without
    limits."""
    met = np.ones(table.num_rows, bool)
    for field, most in (limits or {}).items():
        met &= read_numeric_column(table, field) <= most
    return met


def draw_id_test(
    part: NDArray[np.str_], easy: NDArray[np.int64], counters: NDArray[np.uint64], count: int, seed: str, what: str
) -> None:
    """Assign `count` of the rows at the positions `easy`, drawn by `seed` and their `counters`, to `id_test`. Changes
    `part` in place. `what` says which rows these are, for the `BadDefinition` if they are too few."""
    if not 0 <= count < len(easy):
        raise BadDefinition(f"id_test = {count}, but only {len(easy)} rows {what}")
    part[easy[draw_permutation(f"{seed}/id_test", counters[easy])[:count]]] = "id_test"


def draw_shares(counters: NDArray[np.uint64], seed: str, id_val: float, id_test: float, what: str) -> NDArray[np.str_]:
    """Draw the shares `id_val` and `id_test` of counters, such as row ids or periods; the rest is `train`. Shape
    (counters,). `what` says what the shares are of, for the `BadDefinition` if they are none."""
    if min(id_val, id_test) < 0 or id_val + id_test >= 1:
        raise BadDefinition(f"id_val = {id_val}, id_test = {id_test}: shares of {what}, below 1 together")
    part = np.full(len(counters), "train", dtype="U8")
    order = draw_permutation(seed, counters)
    tested, chosen = round(id_test * len(order)), round(id_val * len(order))
    part[order[:tested]] = "id_test"
    part[order[tested : tested + chosen]] = "id_val"
    return part
