"""Records as a data frame of pandas, which is loaded here only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra

if TYPE_CHECKING:
    import pandas as pd


def to_data_frame(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A row for each record; a nested record has a column for each of its values, named `outer.inner`. `MissingExtra`
    without pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtra("a data frame", "notebook") from error
    return pd.DataFrame([dict(_flatten_record(record)) for record in records])


def _flatten_record(record: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flatten_record(value, f"{outer}{name}.")
        else:
            yield f"{outer}{name}", value
