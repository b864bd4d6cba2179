"""Comma-separated values (RFC 4180): a line for each entry of each table, with unrounded numbers."""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.tables.csv import format_csv
from ..tables.snapshot import Snapshot
from ._table import list_rows


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """Return one file with a header and one line per entry. Missing values are empty cells."""
    return {"standings.csv": format_csv(list_rows(board)).encode()}
