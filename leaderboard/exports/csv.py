"""Comma-separated values (RFC 4180): every entry of every table a line, every number as recorded."""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.tables.csv import written
from ..tables.snapshot import Snapshot
from ._rows import rows_of


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """One file: a header and one line per entry. What there is not is an empty cell."""
    return {"standings.csv": written(rows_of(board)).encode()}
