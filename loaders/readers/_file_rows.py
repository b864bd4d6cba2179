"""Rows with the bytes of one file each, in tables of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_PIECE = 1 << 25
"""Approximate bytes of files per table."""
_ROWS = 1 << 16


def iterate_file_tables(rows: Iterable[tuple[str, bytes, Mapping[str, Any]]]) -> Iterator[pa.Table]:
    """Yield tables of at most about 32 MB from rows of (the file's field, its bytes, the other fields)."""
    waiting: list[dict[str, Any]] = []
    size = 0
    for field, content, others in rows:
        waiting.append({field: content, **others})
        size += len(content)
        if size >= _PIECE or len(waiting) >= _ROWS:
            yield _make_table(waiting)
            waiting, size = [], 0
    if waiting:
        yield _make_table(waiting)


def _make_table(rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    return pa.table({name: [row[name] for row in rows] for name in rows[0]})
