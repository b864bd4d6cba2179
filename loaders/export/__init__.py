"""Parts in other formats: a Parquet file, WebDataset shards, a `datasets.Dataset`.

An export holds the columns of `Part.columns`, says which split, manifest identity and part it is of, and is the same
bytes each time it is made (by one version of pyarrow). A format that is written to disk is one file here with
`export_part(part, out)`, and `shard_bytes` besides where it has shards.
"""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

from ...core.errors import FarshiftError, UnknownName
from ...core.plugins import find_files_by_name, load_module
from ..cache.limit import parse_size


def list_formats() -> list[str]:
    """The formats that are written to disk."""
    return [
        name for name in sorted(find_files_by_name("loaders/export", ".py")) if hasattr(_load_format(name), "write")
    ]


def _load_format(name: str) -> Any:
    return load_module("loaders/export", name, "format of export")


def export_part(
    split: str, part: str, to: str, out: Path, shard_bytes: str | None = None, own_folders: tuple[Path, ...] = ()
) -> dict[str, Any]:
    """Export a part of a split, by name, `to` a format; a record of what was written where.

    `shard_bytes` is a size such as `64MB`, for shards only. Raises `UnknownName` for an unknown split, part or format.
    """
    from ..split import open_split
    from .content import describe_export

    known = list_formats()
    if to not in known:
        raise UnknownName("format of export", to, known)
    options = {}
    if shard_bytes is not None:
        sharded = [name for name in known if "shard_bytes" in signature(_load_format(name).write).parameters]
        if to not in sharded:
            raise FarshiftError(f"--shard-bytes goes with --to {' or '.join(sharded)}: {to} is one file")
        options["shard_bytes"] = parse_size(shard_bytes, "--shard-bytes")
    rows = open_split(split, own_folders).part(part)
    written: Path = _load_format(to).write(rows, out, **options)
    files = sorted(written.iterdir()) if written.is_dir() else [written]
    return {
        **{key: value for key, value in describe_export(rows).items() if key in ("split", "identity", "part", "rows")},
        "format": to,
        "out": str(written),
        "files": [file.name for file in files],
        "bytes": sum(file.stat().st_size for file in files),
    }
