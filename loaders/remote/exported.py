"""The folder that `Part.to_webdataset` wrote, opened from anywhere: its manifest, its index, its shards."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from threading import Event
from typing import TYPE_CHECKING, Any

from ...splits.errors import BadData
from ..cache import cache_root, intact, locked, mark, write_atomically
from ..export.webdataset import FORMAT
from . import File
from .ranges import LONGEST
from .sources import ExportFolder

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Export:
    """`said` is what manifest.json says; `index` has a row for each sample; the shards are in the manifest's order."""

    name: str
    said: dict[str, Any]
    index: pa.Table
    shards: tuple[File, ...]


def read_export(folder: ExportFolder) -> Export:
    """The export in a folder. The index is held to its sha256 and kept in the cache; of the shards nothing is read yet.

    Raises `BadData` for a manifest or an index that is damaged or of another version."""
    said = _manifest(folder)
    try:
        record = said["index"]
        shards = tuple(folder.file(_plain(shard["file"]), int(shard["bytes"])) for shard in said["shards"])
        wrong = [file.name for file, shard in zip(shards, said["shards"], strict=True) if file.size != shard["bytes"]]
        if wrong:
            raise BadData(f"{wrong[0]} is not as long as {folder.name} says: it was cut off or is another file")
        index = _index(folder, _plain(record["file"]), int(record["bytes"]), str(record["sha256"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadData(f"{folder.name}: manifest.json is damaged: {error}") from error
    return Export(folder.name, said, index, shards)


def _manifest(folder: ExportFolder) -> dict[str, Any]:
    content = whole(folder.file("manifest.json", None))
    try:
        said: dict[str, Any] = json.loads(content)
        told = said["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadData(f"{folder.name}: manifest.json is damaged: {error}") from error
    if told != FORMAT:
        raise BadData(f"{folder.name} is of format {told}, and this version streams {FORMAT}: export the part anew")
    return said


def _index(folder: ExportFolder, name: str, size: int, digest: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = cache_root() / "files" / digest[:2] / digest
    if not intact(path):
        content = whole(folder.file(name, size))
        if sha256(content).hexdigest() != digest:
            raise BadData(f"{folder.name}: {name} is damaged: it has not the sha256 that manifest.json says")
        with locked(path):
            write_atomically(path, content)
            mark(path, digest)
    try:
        return pq.read_table(path, memory_map=True)
    except pa.ArrowInvalid as error:
        raise BadData(f"{folder.name}: {name} is no index: {error}") from error


def whole(file: File) -> bytes:
    """All of a file, asked for in pieces."""
    halt = Event()
    return b"".join(file.read(start, min(start + LONGEST, file.size), halt) for start in range(0, file.size, LONGEST))


def _plain(name: str) -> str:
    if not isinstance(name, str) or "/" in name or "\\" in name or name in ("", ".", ".."):
        raise ValueError(f"{name!r} is no name of a file")
    return name
