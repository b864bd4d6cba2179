"""Read WebDataset shards without an index sequentially: every sample's fields, and the positions of its bytes.

A sample is a run of members with the same key; the key ends at the first dot of the last name of the path
(https://github.com/webdataset/webdataset). Only members with fields are read.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadData, get_first_line
from ...splits.schema import Schema
from . import File, samples
from .prefetch import Task, prefetch_tasks
from .ranges import LONGEST

if TYPE_CHECKING:
    import pyarrow as pa

_SAMPLES = 1 << 12
_BYTES = 1 << 20
"""Samples are yielded at this number of samples, or of bytes."""


@dataclass
class _Sample:
    """A sample in shard number `shard`, from `offset` to `end`, and each member's offset and content."""

    key: str
    shard: int
    offset: int
    end: int = 0
    members: dict[str, tuple[int, bytes]] = field(default_factory=dict)


def scan_samples(
    files: Sequence[File], schema: Schema, most: int
) -> Generator[tuple[int, pa.Table, pa.Table], None, None]:
    """Yield all samples in order, in pieces: the number of the first, the schema's fields, and the columns of an index
    (`shard`, `offset`, `length`, and those of each member). At most `most` bytes are prefetched."""
    extensions = sorted({samples.name_member_extension(schema_field) for schema_field in schema.fields})
    first, some, size = 0, list[_Sample](), 0
    for shard, file in enumerate(files):
        with closing(_iterate_samples(file, shard, extensions, most)) as samples_of_file:
            for sample in samples_of_file:
                some.append(sample)
                size += sample.end - sample.offset
                if len(some) == _SAMPLES or size > _BYTES:
                    yield first, *_make_tables(some, files, extensions, schema)
                    first, some, size = first + len(some), [], 0
    if some:
        yield first, *_make_tables(some, files, extensions, schema)


def _iterate_samples(file: File, shard: int, extensions: list[str], most: int) -> Generator[_Sample, None, None]:
    sample: _Sample | None = None
    try:
        # The tar file and its stream form a reference cycle, which would keep the threads alive for a while.
        with closing(_Pieces(file, most)) as pieces, tarfile.open(fileobj=pieces, mode="r|", bufsize=LONGEST) as shards:
            for item in shards:
                # A tar file records every member that was read, of which there may be millions.
                shards.members.clear()  # type: ignore[attr-defined]
                folder, _, name = item.name.rpartition("/")
                stem, _, extension = name.partition(".")
                key = f"{folder}/{stem}"
                if not item.isfile():
                    continue
                if sample is None or sample.key != key:
                    if sample is not None:
                        yield sample
                    sample = _Sample(key, shard, item.offset)
                sample.end = item.offset_data + -(-item.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
                if extension in extensions:
                    if item.issparse():  # holes take no bytes in the file, so their size is unlimited
                        raise BadData(f"{file.name}, offset {item.offset}: {extension} is a sparse member")
                    content = shards.extractfile(item)
                    assert content is not None
                    sample.members[extension] = item.offset_data, content.read()
    except (tarfile.TarError, ValueError, RecursionError) as error:  # the last two from extended headers
        raise BadData(f"{file.name} is not a tar file, or is truncated: {get_first_line(error)}") from error
    if sample is not None:
        yield sample


def _make_tables(
    some: list[_Sample], files: Sequence[File], extensions: list[str], schema: Schema
) -> tuple[pa.Table, pa.Table]:
    import pyarrow as pa

    def locate(row: int) -> str:
        return f"{files[some[row].shard].name}, offset {some[row].offset}"

    for row, sample in enumerate(some):
        if absent := [kind for kind in extensions if kind not in sample.members]:
            raise BadData(f"{locate(row)}: the sample has no {absent[0]}: it belongs to another source")
    contents = {kind: [sample.members[kind][1] for sample in some] for kind in extensions}
    index = {
        "shard": [sample.shard for sample in some],
        "offset": [sample.offset for sample in some],
        "length": [sample.end - sample.offset for sample in some],
    }
    for kind in extensions:
        index[f"{kind}.offset"] = [sample.members[kind][0] for sample in some]
        index[f"{kind}.length"] = [len(sample.members[kind][1]) for sample in some]
    numbers = {name: np.array(values, np.int64) for name, values in index.items()}
    return samples.decode_samples(contents, schema.fields, locate), pa.table(numbers)


class _Pieces(io.RawIOBase):
    """A file read sequentially, with prefetching in pieces."""

    def __init__(self, file: File, most: int) -> None:
        super().__init__()
        starts = range(0, file.size, LONGEST)
        spans = ((start, min(start + LONGEST, file.size)) for start in starts)
        tasks: Iterator[Task[bytes]] = ((stop - start, partial(file.read, start, stop)) for start, stop in spans)
        self._pieces = prefetch_tasks(tasks, most)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self) -> None:
        self._pieces.close()
        super().close()
