"""The content of every export of a part: a description of its origin, and the rows in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from ..part import Part

_BLOCK_BYTES = 1 << 26
_BLOCK_ROWS = 1 << 16


def describe_export(part: Part) -> dict[str, Any]:
    """Describe the origin of an export: split, manifest identity, part, rows (their number, and the sha256 of their ids
    as 64-bit little-endian numbers in order, which distinguishes a selection), and the fields of the source."""
    return {
        "split": part.split,
        "identity": part.identity,
        "part": part.name,
        "rows": len(part),
        "row_ids": sha256(part.row_ids.astype("<u8").tobytes()).hexdigest(),
        "label": part.label,
        "fields": part.schema.records(),
    }


def iterate_blocks(part: Part) -> Iterator[pa.Table]:
    """Yield the part's rows in order, as tables of about 64 MB that are in memory one at a time; at least one."""
    first = part.select(np.arange(min(len(part), 1024))).arrow()
    row_bytes = max(1, first.nbytes // max(1, first.num_rows))
    rows = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // row_bytes))
    for start in range(0, max(1, len(part)), rows):
        yield part.select(np.arange(start, min(start + rows, len(part)))).arrow().combine_chunks()
