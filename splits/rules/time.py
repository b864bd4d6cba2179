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


def periods(
    table: pa.Table,
    *,
    field: str,
    per: int,
    last: int,
    first: int = 0,
    gap: int = 0,
    id_test: float = 0.0,
    id_val: float = 0.0,
    seed: str = "",
) -> Assignment:
    """`per` steps of `field` (whole numbers: hours, rows of a stream) are a period; period 0 begins at 0. Those from
    `first` to `last` train, but for the shares `id_test` and `id_val` of them, drawn by `seed` as whole periods, so
    that no test row has its neighbours of the same day in training. Periods more than `gap` after `last` are
    `ood_test`, all others are dropped. Severity counts the periods since `last`, and each period is a group."""
    if per < 1 or gap < 0:
        raise BadDefinition(f"per = {per}, gap = {gap}: a period has at least one step, and a gap is no less than 0")
    if min(id_val, id_test) < 0 or id_val + id_test >= 1:
        raise BadDefinition(f"id_val = {id_val}, id_test = {id_test}: shares of the training periods, below 1 together")
    period = np.floor_divide(numeric_column(table, field), per).astype(np.int64)
    known = np.unique(period[(period >= first) & (period <= last)])
    if not len(known):
        raise BadDefinition(f"no row has {field} in the periods {first}..{last} of {per}")
    order = known[shuffled(seed, known.astype(np.uint64))]
    tested, chosen = round(id_test * len(known)), round(id_val * len(known))
    part = np.where(period > last + gap, "ood_test", "")
    for name, held in {
        "id_test": order[:tested],
        "id_val": order[tested : tested + chosen],
        "train": order[tested + chosen :],
    }.items():
        part[np.isin(period, held)] = name
    return Assignment(part=part, severity=np.maximum(period - last, 0), group=period.astype(np.str_))
