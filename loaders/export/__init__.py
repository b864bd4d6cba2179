"""Export parts: to a Parquet file, WebDataset shards, or a `datasets.Dataset`.

An export has the columns of `Part.columns`, records its split, manifest identity and part, and is reproducible byte for
byte (by one version of pyarrow). A format that is written to disk is a module here with `write(part, out)`, and
`shard_bytes` if it has shards.
"""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

from ...core.errors import FarshiftError, UnknownName
from ...core.plugins import find_files_by_name, load_module
from ..cache.limit import parse_size


def list_formats() -> list[str]:
    """Return the formats that are written to disk."""
    return [
        name for name in sorted(find_files_by_name("loaders/export", ".py")) if hasattr(_load_format(name), "write")
    ]


def _load_format(name: str) -> Any:
    return load_module("loaders/export", name, "format of export")


def export_part(
    split: str, part: str, to: str, out: Path, shard_bytes: str | None = None, own_folders: tuple[Path, ...] = ()
) -> dict[str, Any]:
    """Export a part of a split, by name, `to` a format. Returns a record of the written files.

    `shard_bytes` is a size such as `64MB`, only for formats with shards. Raises `UnknownName` for an unknown split,
    part or format.
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
            raise FarshiftError(f"--shard-bytes requires --to {' or '.join(sharded)}: {to} is one file")
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
