"""Export parts: to a Parquet file, WebDataset shards, or a `datasets.Dataset`.

An export has the columns of `Part.columns`, records its split, manifest identity and part, and is reproducible byte for
byte (by one version of pyarrow).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import FarshiftError, UnknownName
from ..cache.entries import parse_size

if TYPE_CHECKING:
    from ..part import Part

FORMATS = ("parquet", "webdataset")
"""The formats that are written to disk."""


def export_part(open_part: Callable[[], Part], to: str, out: Path, shard_bytes: str | None = None) -> dict[str, Any]:
    """Export a part, opened once the other arguments are checked, to a format. Returns a record of the written files.

    `shard_bytes` is a size such as `64MB`, only for webdataset. Raises `UnknownName` for an unknown format.
    """
    if to not in FORMATS:
        raise UnknownName("format of export", to, FORMATS)
    if shard_bytes is not None and to != "webdataset":
        raise FarshiftError(f"--shard-bytes requires --to webdataset: {to} is one file")
    size = None if shard_bytes is None else parse_size(shard_bytes, "--shard-bytes")
    rows = open_part()
    written = rows.to_parquet(out) if to == "parquet" else rows.to_webdataset(out, size)
    files = sorted(written.iterdir()) if written.is_dir() else [written]
    return {
        "split": rows.split,
        "identity": rows.identity,
        "part": rows.exported_name,
        "rows": len(rows),
        "format": to,
        "out": str(written),
        "files": [file.name for file in files],
        "bytes": sum(file.stat().st_size for file in files),
    }
