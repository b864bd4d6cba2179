"""Times: the columns of type `timestamp`, and the moments that definitions write."""

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
    """Texts in ISO 8601, dates and times of any unit and zone as `timestamp[us]`: what has a zone is brought to UTC,
    what has none stays as it is written. The zone of the machine plays no part. Raises `pyarrow.ArrowInvalid` for what
    is no time, for texts some of which have a zone and some none, and for parts of a microsecond."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(column.type):
        zoned = pc.any(pc.match_substring_regex(column, ZONED)).as_py()
        column = column.cast(pa.timestamp("us", "UTC") if zoned else pa.timestamp("us"))
    return column.cast(pa.timestamp("us"))


def read_time_column(table: pa.Table, field: str) -> NDArray[np.datetime64]:
    """The column `field` of timestamps, shape (rows,), in microseconds, UTC."""
    if field not in table.column_names:
        raise UnknownName("field", field, table.column_names)
    if str(table[field].type) != "timestamp[us]":
        raise BadDefinition(f"field {field!r} is {table[field].type}, and the rule needs a timestamp")
    values: NDArray[np.datetime64] = table[field].to_numpy()
    return values


def parse_moment(text: str, name: str) -> np.datetime64:
    """A moment as a definition writes it, in ISO 8601; `name` is the parameter's."""
    import pyarrow as pa

    try:
        return np.datetime64(convert_to_utc(pa.chunked_array([[text]], pa.string()))[0].value, "us")
    except pa.ArrowInvalid as error:
        raise BadDefinition(f"{name} = {text!r}: a time is written 2024-05-31 or 2024-05-31T12:30:00Z") from error
