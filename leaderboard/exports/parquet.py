"""Apache Parquet: the rows of the CSV export with their types."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from ..tables.snapshot import Snapshot
from ._rows import list_rows


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """Return one file, `standings.parquet`, with a row per entry. Missing values are null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = list_rows(board)
    columns = {name: _to_column([row[name] for row in rows]) for name in (rows[0] if rows else ())}
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, compression="zstd")
    return {"standings.parquet": buffer.getvalue()}


def _to_column(values: list[Any]) -> Any:
    """Make a column: int64 if all values are integers, float64 for other numbers and for only nulls, else string."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return pa.array(values, pa.int64() if kinds == {int} else pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())
