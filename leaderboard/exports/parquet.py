"""Apache Parquet: the rows of the CSV export with their types."""

from __future__ import annotations

import io
from collections.abc import Mapping

from ..tables.snapshot import Snapshot
from ._table import list_rows


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """Return one file, `standings.parquet`, with a row per entry. Missing values are null; a column of numbers without
    any is float64."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(list_rows(board))
    fields = [field.with_type(pa.float64()) if pa.types.is_null(field.type) else field for field in table.schema]
    buffer = io.BytesIO()
    pq.write_table(table.cast(pa.schema(fields)), buffer, compression="zstd")
    return {"standings.parquet": buffer.getvalue()}
