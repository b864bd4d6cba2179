"""Severity buckets: train up to a bound of some measure, test above it in named ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import read_numeric_column
from ._conditions import draw_id_test, match_limits

if TYPE_CHECKING:
    import pyarrow as pa


def threshold(
    table: pa.Table,
    *,
    field: str,
    bounds: list[int],
    id_test: int,
    seed: str,
    paired_by: str | None = None,
    among: dict[str, int] | None = None,
) -> Assignment:
    """Rows whose integer `field` is at most `bounds[0]` train, except `id_test` rows drawn by `seed`; larger ones are
    `ood_test`. Severity is the field; the group is its range between two bounds (L, 2L, 5L ..), such as 41-80. No row
    may exceed the last bound.

    `paired_by` names a field that numbers the items, equal in every surface format: rows are drawn by it, not by row
    id, so that an item is in the same part in each format. `among` drops the rows that exceed its value of another
    field, so that no second measure grows as well.

    Parameters:
        field: the integer field that is the severity.
        bounds: the upper ends of the ranges, ascending; the first is the largest value that trains.
        id_test: the number of rows up to the first bound in `id_test`.
        paired_by: the field by which rows are drawn, instead of row ids.
    """
    measure = read_numeric_column(table, field)
    if bounds != sorted(set(bounds)) or len(bounds) < 2:
        raise BadDefinition(f"bounds = {bounds}: give two or more, ascending: the last of training, then one per range")
    in_limits = match_limits(table, among)
    near = np.flatnonzero(in_limits & (measure <= bounds[0]))
    counters = (
        table["row_id"].to_numpy() if paired_by is None else read_numeric_column(table, paired_by).astype(np.uint64)
    )
    part = np.where(in_limits, "ood_test", "").astype("U8")
    part[near] = "train"
    draw_id_test(part, near, counters, id_test, seed, f"have {field} <= {bounds[0]}")
    if measure[in_limits].max() > bounds[-1]:
        raise BadDefinition(f"{field} reaches {measure[in_limits].max()}, beyond the last of the bounds {bounds}")
    least = [int(measure[in_limits].min()), *(bound + 1 for bound in bounds[:-1])]
    names = np.array([f"{low}-{high}" for low, high in zip(least, bounds, strict=True)])
    ranges = np.minimum(np.searchsorted(bounds, measure, side="left"), len(bounds) - 1)
    return Assignment(part=part, severity=measure, group=names[ranges])
