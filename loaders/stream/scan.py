"""Find a part's rows in files without an index, by reading them once as long as they are unchanged.

A row's check selects the part's rows that it can be; its inputs and an occurrence number then have to give that row's
id. Rows with the same check are equal in all fields, so it does not matter which of them gets which number.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.canonical import compute_identity
from ...core.errors import BadData, get_first_line
from ...core.files import get_cache_root
from ...core.progress import report_progress
from ...splits.rows import compute_row_digests, find_occurrence_numbers, get_digest_prefixes
from ...splits.schema import Schema
from ..cache.store import load_or_build_table
from ..export.webdataset import name_member_extension
from ..part import Part
from ..remote.files import LONGEST, File, RangeFile
from .shards import decode_samples

if TYPE_CHECKING:
    import pyarrow as pa

RowIterator = Generator[tuple[int, "pa.Table", "pa.Table"], None, None]
"""All rows of some files in order, in pieces: the number of the first, the source's fields, and further columns of each
row, such as its location."""

_SAMPLES = 1 << 12
_BYTES = 1 << 20
"""Samples of a tar file are yielded at this number of samples, or of bytes."""


def locate_rows(known: Part, files: Sequence[File], most: int, scan: Callable[[], RowIterator]) -> pa.Table:
    """Find a part's rows, of a source of `most` rows, in files. Returns `number`, `occurrence` and the further columns
    of `scan`, in the part's order.

    The result is cached by the files' identities; else `scan` is read until all rows are found. Raises `BadData` if
    some are absent.
    """
    identities = [file.identity for file in files]
    if None in identities:
        return _scan_for_rows(known, files, most, scan())
    key = compute_identity(
        {"of": known.identity, "part": known.name, "files": identities, "fields": known.schema.records()}
    )
    path = get_cache_root() / "splits" / f"{known.split.partition('@')[0].replace('/', '-')}-{known.name}"
    return load_or_build_table(
        path.with_name(f"{path.name}-found-{key[:32]}.arrow"), lambda: _scan_for_rows(known, files, most, scan())
    )


def _scan_for_rows(known: Part, files: Sequence[File], most: int, scan: RowIterator) -> pa.Table:
    import pyarrow as pa

    matching = RowMatcher(known.row_ids, known.source["check"].to_numpy(), known.schema, most)
    label, remaining = f"finding the rows of {known.split}, {known.name}", len(known)
    matched_rows, row_details = [np.zeros(0, np.int64)], list[pa.Table]()
    with closing(scan):
        for first, table, details in scan:
            matched_rows.append(matching.match(table, first))
            row_details.append(details.take(matching.where[matched_rows[-1]] - first))
            remaining -= len(matched_rows[-1])
            report_progress(label, len(known) - remaining, len(known))
            if not remaining:
                break
    if len(missing := matching.missing):
        raise BadData(
            f"{files[0].name}{' ..' if len(files) > 1 else ''} lacks {len(missing):,} of {len(known):,} rows of "
            f"{known.split}, {known.name} (first: {known.row_ids[missing[0]]:016x}): it has other rows, or is damaged"
        )
    index = pa.concat_tables(row_details).take(np.argsort(np.concatenate(matched_rows)))
    return index.append_column("number", [matching.where]).append_column("occurrence", [matching.occurrence])


class RowMatcher:
    """Finds the rows with these ids and checks (shape (rows,)), of a source of `most` rows, in a stream: `where` is the
    number of the row in the stream (-1 until it is found) and `occurrence` its occurrence number."""

    def __init__(self, row_ids: NDArray[np.uint64], checks: NDArray[np.uint64], schema: Schema, most: int) -> None:
        self.where = np.full(len(row_ids), -1, np.int64)
        self.occurrence = np.zeros(len(row_ids), np.int64)
        self._row_ids, self._schema, self._most = row_ids, schema, most
        self._order = np.argsort(checks, kind="stable")
        self._checks = checks[self._order]
        self._used = np.zeros(len(row_ids), np.int64)  # at the first row of each check: how many were found

    @property
    def missing(self) -> NDArray[np.int64]:
        """The part's rows that were not found yet."""
        return np.flatnonzero(self.where < 0)

    def match(self, table: pa.Table, first: int) -> NDArray[np.int64]:
        """Process rows with all fields of the source, numbered from `first`. Returns the part's rows that were found.
        Raises `BadData` for a row whose inputs do not give the id."""
        checks = get_digest_prefixes(compute_row_digests(table, self._schema))
        begins, ends = (np.searchsorted(self._checks, checks, side) for side in ("left", "right"))
        hits = np.flatnonzero(begins < ends)
        hits = hits[np.argsort(begins[hits], kind="stable")]
        # The n-th row of a check stands for the n-th of the part's rows with it, if there are so many.
        begin = begins[hits]
        turns = begin + self._used[begin] + np.arange(len(hits)) - np.searchsorted(begin, begin)
        new = turns < ends[hits]
        np.add.at(self._used, begin[new], 1)
        rows: NDArray[np.int64] = self._order[turns[new]]
        self.where[rows] = first + hits[new]
        self.occurrence[rows] = find_occurrence_numbers(
            table.take(hits[new]), self._schema, self._row_ids[rows], self._most
        )
        return rows


@dataclass
class _Sample:
    """A sample: `record` has the columns of an index (`shard`, `offset`, `length`, and those of each member)."""

    key: str
    record: dict[str, int]
    contents: dict[str, bytes] = field(default_factory=dict)


def scan_tars(files: Sequence[File], schema: Schema) -> RowIterator:
    """Yield all samples of WebDataset shards in order, with the columns of an index.

    A sample is a run of members with the same key; the key ends at the first dot of the last name of the path
    (https://github.com/webdataset/webdataset). Only members with fields are read."""
    extensions = sorted({name_member_extension(schema_field) for schema_field in schema.fields})
    first, some, size = 0, list[_Sample](), 0
    for shard, file in enumerate(files):
        for sample in _iterate_samples(file, shard, extensions):
            some.append(sample)
            size += sample.record["length"]
            if len(some) == _SAMPLES or size > _BYTES:
                yield first, *_make_tables(some, files, extensions, schema)
                first, some, size = first + len(some), [], 0
    if some:
        yield first, *_make_tables(some, files, extensions, schema)


def _iterate_samples(file: File, shard: int, extensions: list[str]) -> Iterator[_Sample]:
    sample: _Sample | None = None
    try:
        with tarfile.open(fileobj=RangeFile(file, Event()), mode="r|", bufsize=LONGEST) as archive:
            for item in archive:
                # A tar file records every member that was read, of which there may be millions.
                archive.members.clear()  # type: ignore[attr-defined]
                folder, _, name = item.name.rpartition("/")
                stem, _, extension = name.partition(".")
                if not item.isfile():
                    continue
                if sample is None or sample.key != f"{folder}/{stem}":
                    if sample is not None:
                        yield sample
                    sample = _Sample(f"{folder}/{stem}", {"shard": shard, "offset": item.offset})
                end = item.offset_data + -(-item.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
                sample.record["length"] = end - sample.record["offset"]
                if extension in extensions:
                    if item.issparse():  # holes take no bytes in the file, so their size is unlimited
                        raise BadData(f"{file.name}, offset {item.offset}: {extension} is a sparse member")
                    content = archive.extractfile(item)
                    assert content is not None
                    sample.contents[extension] = content.read()
                    sample.record |= {f"{extension}.offset": item.offset_data, f"{extension}.length": item.size}
    except (tarfile.TarError, ValueError, RecursionError) as error:  # the last two from extended headers
        raise BadData(f"{file.name} is not a tar file, or is truncated: {get_first_line(error)}") from error
    if sample is not None:
        yield sample


def _make_tables(
    some: list[_Sample], files: Sequence[File], extensions: list[str], schema: Schema
) -> tuple[pa.Table, pa.Table]:
    import pyarrow as pa

    def locate(row: int) -> str:
        return f"{files[some[row].record['shard']].name}, offset {some[row].record['offset']}"

    for row, sample in enumerate(some):
        if absent := [extension for extension in extensions if extension not in sample.contents]:
            raise BadData(f"{locate(row)}: the sample has no {absent[0]}: it belongs to another source")
    contents = {extension: [sample.contents[extension] for sample in some] for extension in extensions}
    places = {name: np.array([sample.record[name] for sample in some], np.int64) for name in sorted(some[0].record)}
    return decode_samples(contents, schema.fields, locate), pa.table(places)
