"""Time: train on what was known until a date, test on what came later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.draws import shuffled
from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import numeric_column

if TYPE_CHECKING:
    import pyarrow as pa


def cutoff(table: pa.Table, *, field: str, first: int, last: int, id_test: int, seed: str) -> Assignment:
    """Rows whose period (`field`, whole numbers: months, years) lies in `first`..`last` train, but for `id_test` of
    them, drawn by `seed`; later rows are `ood_test`, earlier ones are dropped. Severity counts the periods since
    `last`, and each period is a group."""
    period = numeric_column(table, field)
    known = np.flatnonzero((period >= first) & (period <= last))
    if not 0 <= id_test < len(known):
        raise BadDefinition(f"id_test = {id_test}, but only {len(known)} rows have {field} in {first}..{last}")
    part = np.where(period > last, "ood_test", "")
    part[known] = "train"
    ids = table["row_id"].to_numpy()[known]
    part[known[shuffled(f"{seed}/id_test", ids)[:id_test]]] = "id_test"
    return Assignment(part=part, severity=np.maximum(period - last, 0), group=period.astype(np.int64).astype(np.str_))
