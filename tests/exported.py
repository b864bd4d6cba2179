"""A part written in both formats that streams read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from farshift.loaders.split import open_split


def export(split: str, part: str, folder: Path, shard_bytes: int | None = None) -> Path:
    """`folder` with `shards/` and `<part>.parquet`."""
    rows = open_split(split).part(part)
    rows.to_webdataset(folder / "shards", shard_bytes)
    rows.to_parquet(folder / f"{part}.parquet")
    return folder


def edit_index(shards: Path, folder: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
    """A copy of the shards in `folder` whose index is another table, and whose manifest agrees with it."""
    shutil.copytree(shards, folder)
    index = next(folder.glob("*.index.parquet"))
    pq.write_table(change(pq.read_table(index)), index)
    record, content = json.loads((folder / "manifest.json").read_text()), index.read_bytes()
    record["index"] |= {"bytes": len(content), "sha256": sha256(content).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(record))
    return folder
