"""Parts in other formats: a Parquet file, WebDataset shards, a `datasets.Dataset`.

An export holds the columns of `Part.columns`, says which split, manifest identity and part it is of, and is the same
bytes each time it is made (by one version of pyarrow).
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import FarshiftError, UnknownName
from ..cache.limit import size_in_bytes

if TYPE_CHECKING:
    import pyarrow as pa

    from ..part import Part

FORMATS = ("parquet", "webdataset")
_BLOCK_BYTES = 1 << 26
_BLOCK_ROWS = 1 << 16


def description(part: Part) -> dict[str, Any]:
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


def blocks(part: Part) -> Iterator[pa.Table]:
    """The part's rows in order, as tables of some 64 MB that are in memory one at a time; at least one."""
    first = part.select(np.arange(min(len(part), 1024))).arrow()
    row_bytes = max(1, first.nbytes // max(1, first.num_rows))
    rows = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // row_bytes))
    for start in range(0, max(1, len(part)), rows):
        yield part.select(np.arange(start, min(start + rows, len(part)))).arrow().combine_chunks()


def write(
    split: str, part: str, to: str, out: Path, shard_bytes: str | None = None, own_folders: tuple[Path, ...] = ()
) -> dict[str, Any]:
    """Export a part of a split, by name, `to` `parquet` or `webdataset`; a record of what was written where.

    `shard_bytes` is a size such as `64MB`, for shards only. Raises `UnknownName` for an unknown split, part or format.
    """
    from ..split import open_split
    from .parquet import to_parquet
    from .webdataset import SHARD_BYTES, to_webdataset

    if to not in FORMATS:
        raise UnknownName("format of export", to, FORMATS)
    if shard_bytes is not None and to != "webdataset":
        raise FarshiftError(f"--shard-bytes goes with --to webdataset: {to} is one file")
    size = SHARD_BYTES if shard_bytes is None else size_in_bytes(shard_bytes, "--shard-bytes")
    rows = open_split(split, own_folders).part(part)
    written = to_parquet(rows, out) if to == "parquet" else to_webdataset(rows, out, size)
    files = sorted(written.iterdir()) if written.is_dir() else [written]
    return {
        **{key: value for key, value in description(rows).items() if key in ("split", "identity", "part", "rows")},
        "format": to,
        "out": str(written),
        "files": [file.name for file in files],
        "bytes": sum(file.stat().st_size for file in files),
    }
