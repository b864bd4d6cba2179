"""Write a part as WebDataset shards, with an index of each row's byte range.

One sample per row, in stored order. A sample's key is the row id in 16 hexadecimal digits; its members are `<key>.json`
(numbers, texts and booleans) and per tensor `<key>.<field>.npy`, per field of bytes `<key>.<field>.bin`, without
pickle. Layout: https://github.com/webdataset/webdataset (Aizman, Maltby and Breuel, 2019, arXiv:2001.01858).
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.canonical import to_canonical_json
from ...core.errors import FarshiftError
from ...core.files import compute_file_sha256
from ...core.progress import report_progress
from ...splits.schema import Field
from ..batching.batched import BatchedPart
from .content import compute_checksums, describe_export, iterate_blocks, stage_export

if TYPE_CHECKING:
    import pyarrow as pa


FORMAT = "farshift-webdataset-2"
SHARD_BYTES = 256 * 2**20
NPY_ITEMS = {"uint8": "|u1", "int64": "<i8", "float32": "<f4"}
"""The element types of tensors in npy files."""
_END = bytes(2 * tarfile.BLOCKSIZE)


def write(part: BatchedPart, out: Path | str, shard_bytes: int = SHARD_BYTES) -> Path:
    """Write the part to a new folder `out`, atomically. Returns the folder.

    `<source>-<split>-<part>-000000.tar` ..: shards of at most `shard_bytes` (at least one row). They are reproducible
    byte for byte, since owners, modes and times are fixed.
    `<source>-<split>-<part>.index.parquet`: per row `row_id`, `check` (of the row as written, `splits/rows.py`),
    `shard` (its number), and the `offset` and `length` in bytes of the whole sample and of each member's content, such
    as `pixels.npy.offset`: one range request reads one row. Then the checksums of `content.py`, from which the part's
    pinned digest is recomputed.
    `manifest.json`: format, split, identity, part, rows, label, fields, `shard_bytes`, the index and the shards with
    rows, bytes and sha256.

    Raises `FarshiftError` if the folder has anything in it, if a row occurs twice in the part, or if there is no space.
    """
    target = Path(out)
    if shard_bytes < 1:
        raise FarshiftError(f"shard_bytes must be at least 1, not {shard_bytes}")
    if len(np.unique(part.row_ids)) != len(part):
        raise FarshiftError(
            f"{part.split}, {part.name}: a row is selected twice, but keys of samples have to be unique"
        )
    with stage_export(target, "folder") as beside:
        beside.mkdir()
        _write_shards(part, beside, shard_bytes)
    return target


def _write_shards(part: BatchedPart, folder: Path, shard_bytes: int) -> None:
    stem = f"{part.split.partition('@')[0].replace('/', '-')}-{part.exported_name}"
    shards, done = _ShardWriter(folder, stem, shard_bytes), 0
    checked: list[pa.Table] = []
    try:
        for block in iterate_blocks(part):
            checked.append(compute_checksums(part.select(np.arange(done, done + block.num_rows)), block))
            for key, members in _iterate_samples(block, part):
                shards.add(key, members)
            done += block.num_rows
            report_progress(f"writing {stem}", done, len(part))
        shards.finish()
    finally:
        shards.file.close()
    written = folder / f"{stem}.index.parquet"
    _write_index(written, checked, shards.places)
    description = {"format": FORMAT, **describe_export(part), "shard_bytes": shard_bytes}
    manifest = {**description, "index": _describe_file(written), "shards": shards.records}
    (folder / "manifest.json").write_bytes(to_canonical_json(manifest) + b"\n")


def name_member_extension(field: Field) -> str:
    """Return the extension of the member of a sample that has a field."""
    if field.shape:
        return f"{field.name}.npy"
    return f"{field.name}.bin" if field.item == "bytes" else "json"


def _iterate_samples(block: pa.Table, part: BatchedPart) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Each row's key and members, by extension."""
    import pyarrow as pa

    fields = [field for field in part.schema.fields if name_member_extension(field) != "json"]
    fields.sort(key=lambda field: field.name)
    columns: dict[str, Any] = {}
    for name in block.column_names:
        if name not in {field.name for field in fields}:
            is_time = pa.types.is_timestamp(block[name].type)
            columns[name] = block[name].cast(pa.int64()) if is_time else block[name]  # microseconds, for JSON
    members: list[Iterator[bytes]] = [map(to_canonical_json, pa.table(columns).to_pylist())]
    members += [_encode_column(block[field.name], field) for field in fields]
    extensions = ["json", *map(name_member_extension, fields)]
    for row_id, *contents in zip(block["row_id"].to_pylist(), *members, strict=True):
        yield f"{row_id:016x}", dict(zip(extensions, contents, strict=True))


def _encode_column(column: pa.ChunkedArray, field: Field) -> Iterator[bytes]:
    """The content of each row's member for a tensor or bytes."""
    import pyarrow.compute as pc

    if not field.shape:
        yield from (bytes(value.as_buffer()) for value in column)
        return
    values = pc.list_flatten(column).to_numpy().reshape(-1, *field.shape)
    values, header = np.ascontiguousarray(values, NPY_ITEMS[field.item]), make_npy_header(field)
    yield from (header + value.tobytes() for value in values)


def make_npy_header(field: Field) -> bytes:
    """Return the head of the npy file of a row's tensor, up to its elements."""
    header = io.BytesIO()
    described: dict[str, Any] = {"descr": NPY_ITEMS[field.item], "fortran_order": False, "shape": field.shape}
    np.lib.format.write_array_header_1_0(header, described)
    return header.getvalue()


class _ShardWriter:
    """Writes samples to consecutive tar files. `records` describes each file, `places` has columns of the index."""

    def __init__(self, folder: Path, stem: str, limit: int) -> None:
        self.records: list[dict[str, Any]] = []
        self.places: dict[str, list[int]] = {}
        self._folder, self._stem, self._limit = folder, stem, limit
        self._open()

    def _open(self) -> None:
        self._path, self._rows = self._folder / f"{self._stem}-{len(self.records):06d}.tar", 0
        self.file = self._path.open("wb")

    def add(self, key: str, members: dict[str, bytes]) -> None:
        """Write a sample, and record the offsets and lengths of it and of its members."""
        sample, inside = bytearray(), {}
        for extension, content in members.items():
            member = tarfile.TarInfo(f"{key}.{extension}")
            member.size, member.mode = len(content), 0o644
            sample += member.tobuf(tarfile.PAX_FORMAT, "utf-8")
            inside[extension] = len(sample), len(content)
            sample += content + bytes(-len(content) % tarfile.BLOCKSIZE)
        if self._rows and self.file.tell() + len(sample) + len(_END) > self._limit:
            self.finish()
            self._open()
        start = self.file.tell()
        location = {"shard": len(self.records), "offset": start, "length": len(sample)}
        for extension, (offset, length) in inside.items():
            location |= {f"{extension}.offset": start + offset, f"{extension}.length": length}
        for name, value in location.items():
            self.places.setdefault(name, []).append(value)
        self.file.write(sample)
        self._rows += 1

    def finish(self) -> None:
        """Finish the last shard."""
        self.file.write(_END)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self.records.append(_describe_file(self._path) | {"rows": self._rows})


def _describe_file(path: Path) -> dict[str, Any]:
    return {"file": path.name, "bytes": path.stat().st_size, "sha256": compute_file_sha256(path)}


def _write_index(path: Path, proofs: list[pa.Table], index: dict[str, list[int]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.concat_tables(proofs)
    for name in index:
        table = table.append_column(name, [np.array(index[name], np.int64)])
    pq.write_table(table, path, compression="zstd")
