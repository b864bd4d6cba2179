"""Times: columns of type `timestamp`, and the times in definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition, UnknownName

if TYPE_CHECKING:
    import pyarrow as pa

ZONED = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}(:?\d{2})?)$"
NAIVE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?$"
"""Times in ISO 8601, with a zone or an offset, and without."""


def convert_to_utc(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert ISO 8601 texts, dates, and times of any unit and zone to `timestamp[us]`: times with a zone are converted
    to UTC, others are unchanged; the machine's zone has no effect. Raises `pyarrow.ArrowInvalid` for invalid times, for
    a column of texts with and without a zone, and for fractions of a microsecond."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(column.type):
        zoned = pc.any(pc.match_substring_regex(column, ZONED)).as_py()
        column = column.cast(pa.timestamp("us", "UTC") if zoned else pa.timestamp("us"))
    return column.cast(pa.timestamp("us"))


def read_time_column(table: pa.Table, field: str) -> NDArray[np.datetime64]:
    """Return the timestamp column `field`, shape (rows,), in microseconds, UTC."""
    if field not in table.column_names:
        raise UnknownName("field", field, table.column_names)
    if str(table[field].type) != "timestamp[us]":
        raise BadDefinition(f"field {field!r} is {table[field].type}, and the rule needs a timestamp")
    values: NDArray[np.datetime64] = table[field].to_numpy()
    return values


def parse_moment(text: str, name: str) -> np.datetime64:
    """Parse a time in ISO 8601 from a definition; `name` is its parameter."""
    import pyarrow as pa

    try:
        return np.datetime64(convert_to_utc(pa.chunked_array([[text]], pa.string()))[0].value, "us")
    except pa.ArrowInvalid as error:
        raise BadDefinition(f"{name} = {text!r}: write a time as 2024-05-31 or 2024-05-31T12:30:00Z") from error
