"""Open a local or remote folder that `Part.to_webdataset` wrote: its manifest, index and shards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, get_first_line
from ...core.files import get_cache_root, hold_lock, write_atomically
from ...splits.schema import Schema
from ..cache.store import is_intact, write_marker
from ..export.checksums import TYPES
from ..export.webdataset import FORMAT
from . import File, samples
from .ranges import LONGEST
from .received import parse_json_object
from .sources import ExportFolder

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_MANIFEST = 1 << 26
"""In bytes: a record of a shard takes about 150."""

_OPTIONAL = ("weight", "group", "severity", "label", "true_label", "source_check")
_MAY_BE_NULL = ("label", "true_label", "source_check")


@dataclass(frozen=True)
class Export:
    """`said` is the content of manifest.json; `index` has a row for each sample; the shards are in the manifest's
    order."""

    name: str
    manifest: dict[str, Any]
    index: pa.Table
    shards: tuple[File, ...]


def read_export(folder: ExportFolder, schema: Schema, label: str, most: int) -> Export:
    """Open the export in a folder, of rows of a source with this schema, label and number of rows. The index is checked
    by sha256 and cached; the shards are not read yet.

    Raises `BadData` for a manifest or an index that is damaged or of another version."""
    manifest = _read_manifest(folder)
    try:
        record = manifest["index"]
        shards = tuple(
            folder.file(_check_file_name(shard["file"]), _check_size(shard["bytes"])) for shard in manifest["shards"]
        )
        wrong = [
            file.name for file, shard in zip(shards, manifest["shards"], strict=True) if file.size != shard["bytes"]
        ]
        if wrong:
            raise BadData(
                f"{wrong[0]} has another size than in the manifest of {folder.name}: it is truncated or another file"
            )
        if not shards:
            raise ValueError("it lists no shards")
        name, size, digest = (
            _check_file_name(record["file"]),
            _check_size(record["bytes"]),
            _check_digest(record["sha256"]),
        )
    except KeyError as error:
        raise BadData(f"{folder.name}: manifest.json is damaged: it has no {error}") from error
    except (TypeError, ValueError) as error:
        raise BadData(f"{folder.name}: manifest.json is damaged: {get_first_line(error)}") from error
    path = _fetch_index(folder, name, size, digest)
    index = _read_index(path, f"{folder.name}: {name}", _list_column_types(schema, label), most)
    return Export(folder.name, manifest, index, shards)


def _read_manifest(folder: ExportFolder) -> dict[str, Any]:
    file = folder.file("manifest.json", None)
    if file.size > _LONGEST_MANIFEST:
        raise BadData(f"{file.name} has {file.size:,} bytes: it is not the manifest of an export")
    try:
        manifest = parse_json_object(read_whole_file(file))
        format_name = manifest["format"]
    except (ValueError, KeyError) as error:
        raise BadData(f"{folder.name}: manifest.json is damaged: {get_first_line(error)}") from error
    if format_name != FORMAT:
        raise BadData(
            f"{folder.name} has format {format_name!r}, but this version streams {FORMAT}: export the part again"
        )
    return manifest


def _fetch_index(folder: ExportFolder, name: str, size: int, digest: str) -> Path:
    """The cached index."""
    path = get_cache_root() / "files" / digest[:2] / digest
    if not is_intact(path):
        content = read_whole_file(folder.file(name, size))
        if sha256(content).hexdigest() != digest:
            raise BadData(f"{folder.name}: {name} is damaged: its sha256 is not the one in manifest.json")
        with hold_lock(path):
            write_atomically(path, content)
            write_marker(path, digest)
    return path


def _list_column_types(schema: Schema, label: str) -> dict[str, tuple[str, ...]]:
    """The possible columns of an index of rows with this schema, and their types."""
    members = {samples.name_member_extension(field) for field in schema.fields}
    places = {f"{member}.{what}": ("int64",) for member in members for what in ("offset", "length")}
    places |= {name: ("int64",) for name in ("shard", "offset", "length")}
    labels = {name: (str(schema[label].arrow()),) for name in ("label", "true_label")}
    return TYPES | places | labels


def _read_index(path: Path, where: str, kinds: Mapping[str, tuple[str, ...]], most: int) -> pa.Table:
    """The columns of an index. Raises `BadData` for an invalid column, or for more than `most` rows."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            if file.metadata.num_rows > most:
                raise BadData(f"{where} has {file.metadata.num_rows:,} rows, more than the source ({most:,})")
            index = file.read([name for name in kinds if name in file.schema_arrow.names])
        if len(set(index.column_names)) < index.num_columns:
            raise ValueError("a column occurs twice")
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadData(f"{where} is not an index: {get_first_line(error)}") from error
    absent = [name for name in sorted(kinds) if name not in index.column_names and name not in _OPTIONAL]
    if absent:
        raise BadData(f"{where} lacks the columns {', '.join(absent)}: export the part again")
    for name in index.column_names:
        if str(index[name].type) not in kinds[name] or (index[name].null_count and name not in _MAY_BE_NULL):
            raise BadData(f"{where}: column {name} is not {' or '.join(kinds[name])}: export the part again")
    if index.num_rows and pc.min(index["occurrence"]).as_py() < 0:
        raise BadData(f"{where}: column occurrence has negative numbers: export the part again")
    return index


def read_whole_file(file: File) -> bytes:
    """Read a whole file in pieces."""
    cancel = Event()
    return b"".join(file.read(start, min(start + LONGEST, file.size), cancel) for start in range(0, file.size, LONGEST))


def _check_file_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isprintable() or "/" in name or "\\" in name or name in ("", ".", ".."):
        raise ValueError(f"{name!r} is not a file name")
    return name


def _check_size(size: Any) -> int:
    if not isinstance(size, int) or not 0 <= size < 1 << 62:
        raise ValueError(f"{size!r} is not a number of bytes")
    return size


def _check_digest(digest: Any) -> str:
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError(f"{digest!r} is not a sha256")
    return digest
