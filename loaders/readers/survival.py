"""Survival data as classification: whether an event occurred within a horizon, for persons for whom this is known."""

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
    """The rows of CSV tables, with `label` 1 if an event occurred at a time of at most `within`, and 0 if it did not
    and the person was followed for longer. Rows that were censored before (no event by then, and not followed for
    longer) are left out.

    events: for each file `{column that is 1 if the event occurred: column of its time}`. The first event that occurred
    counts; if none did, the time of the last event is the time of follow-up. The other options and fields are those of
    the reader `table`.
    """
    import pyarrow as pa

    tables = []
    for name, path in files.items():
        if name not in events:
            raise BadDefinition(f"survival: `events` does not name the file {name}")
        known, happened = _read_outcomes(path, name, events[name], within)
        rest = Schema(tuple(field for field in schema.fields if field.name != label))
        table = read_table({name: path}, schema=rest, **options)
        if table.num_rows != len(known):
            raise BadDefinition(f"survival: {name}: other options leave out rows, which is not supported")
        tables.append(table.append_column(label, pa.array(happened.astype(np.int64))).filter(pa.array(known)))
    return pa.concat_tables(tables, promote_options="permissive")


def _read_outcomes(
    path: Path, name: str, events: dict[str, str], within: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for each row whether the outcome within the horizon is known, and whether the event occurred."""
    columns = [*events, *events.values()]
    cells = read_table({name: path}, columns={f"c{at}": column for at, column in enumerate(columns)})
    try:
        values = np.array([cells[f"c{at}"].to_pylist() for at in range(len(columns))], np.float64)
    except ValueError as error:
        raise BadData(f"{name}: {', '.join(columns)}: a value is not a number: {error}") from error
    came, times = values[: len(events)] == 1, values[len(events) :]
    first = np.where(came.any(axis=0), came.argmax(axis=0), len(events) - 1)
    time = times[first, np.arange(times.shape[1])]
    happened = came.any(axis=0) & (time <= within)
    return happened | (time > within), happened
