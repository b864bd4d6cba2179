"""What every export of a part holds: a description of what it is of, and the rows in blocks."""

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
    """What an export is of: split, manifest identity, part, its rows (their number, and sha256 over their ids as 64-bit
    little-endian numbers in order: a selection is told from the whole), and the fields of the source."""
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
    """The part's rows in order, as tables of some 64 MB that are in memory one at a time; at least one."""
    first = part.select(np.arange(min(len(part), 1024))).arrow()
    row_bytes = max(1, first.nbytes // max(1, first.num_rows))
    rows = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // row_bytes))
    for start in range(0, max(1, len(part)), rows):
        yield part.select(np.arange(start, min(start + rows, len(part)))).arrow().combine_chunks()
