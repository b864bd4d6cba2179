"""Survival data as a class: whether an event came within a horizon, of those for whom that is known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition
from ...splits.schema import Schema
from .table import read as read_table

if TYPE_CHECKING:
    import pyarrow as pa


def read(
    files: dict[str, Path],
    *,
    schema: Schema,
    label: str,
    within: float,
    events: Mapping[str, dict[str, str]],
    **options: Any,
) -> pa.Table:
    """The rows of CSV tables, with `label` 1 where an event came at a time of at most `within`, and 0 where it did not
    and the person was followed for longer. Rows without an event by then, and not followed for longer, are left out:
    of them it is not known.

    events: for each file `{column that is 1 where the event came: column of its time}`; the first event that came
    counts, and where none came the time of the last is that until which the person was followed. The other options,
    and the other fields, are those of the reader `table`.
    """
    import pyarrow as pa

    tables = []
    for name, path in files.items():
        if name not in events:
            raise BadDefinition(f"survival: `events` says nothing of the file {name}")
        known, happened = _read_outcomes(path, name, events[name], within)
        rest = Schema(tuple(field for field in schema.fields if field.name != label))
        table = read_table({name: path}, schema=rest, **options)
        if table.num_rows != len(known):
            raise BadDefinition(f"survival: {name}: rows are left out by other options, and may not be")
        tables.append(table.append_column(label, pa.array(happened.astype(np.int64))).filter(pa.array(known)))
    return pa.concat_tables(tables, promote_options="permissive")


def _read_outcomes(
    path: Path, name: str, events: dict[str, str], within: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each row whether it is known what happened within the horizon, and whether the event did."""
    columns = [*events, *events.values()]
    cells = read_table({name: path}, columns={f"c{at}": column for at, column in enumerate(columns)})
    try:
        values = np.array([cells[f"c{at}"].to_pylist() for at in range(len(columns))], np.float64)
    except ValueError as error:
        raise BadData(f"{name}: {', '.join(columns)}: a value that is no number: {error}") from error
    came, times = values[: len(events)] == 1, values[len(events) :]
    first = np.where(came.any(axis=0), came.argmax(axis=0), len(events) - 1)
    time = times[first, np.arange(times.shape[1])]
    happened = came.any(axis=0) & (time <= within)
    return happened | (time > within), happened
