"""Comma-separated values (RFC 4180): every entry of every table a line, every number as recorded."""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.tables.csv import format_csv
from ..tables.snapshot import Snapshot
from ._rows import list_rows


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """One file: a header and one line per entry. What there is not is an empty cell."""
    return {"standings.csv": format_csv(list_rows(board)).encode()}
