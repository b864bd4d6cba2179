"""Open a part as a stream, from its manifest and the files that contain its rows.

The part's rows (their ids and checks) are known without its source from an export, whose index has to give the part's
pinned digest; from the manifest if it ships them; or from the cache of a split that was pulled before. Only the
digest is trusted.
"""

from __future__ import annotations

from contextlib import closing
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.canonical import compute_identity
from ...core.errors import BadData, BadDefinition, FarshiftError, Unavailable, UnknownName
from ...core.files import get_cache_root
from ...core.label_access import refuse_labels
from ...core.progress import report_progress
from ...splits.assignment import compute_part_digests
from ...splits.catalogue import find_manifest
from ...splits.manifest import Manifest
from ...splits.rows import compute_row_digests, find_occurrence_numbers, get_digest_prefixes
from ...splits.schema import Schema
from ..acquire.source import Source as DataSource
from ..cache.store import is_intact, load_or_build_table
from ..export.content import make_manifest_rows
from ..part import Part
from ..split import Split, find_pinned_source, make_assignment_path
from .files import cache_in_memory
from .parquet import ParquetFiles, ParquetStore
from .part import Store, StreamedPart
from .shards import ShardStore, read_export
from .sources import ExportFolder, Source, resolve_location

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY = 1 << 28
"""The maximum bytes of rows of an iterator, prefetched or yielded."""


def stream(name: str, part: str, source: Source, memory: int = MEMORY) -> StreamedPart:
    """Open a part without downloading it: `stream("scan/length", "train", "https://example.org/shards")`.

    `source` is a folder that `Part.to_webdataset` wrote (its path, an https address, or
    `hf://datasets/owner/name@revision/path`), or Parquet files of the data set (paths, addresses or patterns, one or
    several). A Hub revision is resolved to its commit once, here. An iterator has at most `memory`
    bytes of rows in memory; remote files that take at most three quarters of it are cached in memory and fetched once.

    Of an export, only the byte ranges of the needed rows are read. Parquet files are read once completely to find the
    part's rows; the positions are cached as long as the files are unchanged.

    The id and check of every row that is read are recomputed from its content.

    Raises a `FarshiftError` of one line for an unknown name or part, for files that are not available or lack rows of
    the part, and for a manifest whose rows are not known without its source.

    >>> import tempfile
    >>> import farshift as fs
    >>> local = fs.load("modadd97/xi35")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     streamed = fs.stream("modadd97/xi35", "train", str(local.to_webdataset(folder + "/shards")))
    ...     first = next(streamed.batches(3, seed=0))
    >>> first["a"].tolist() == next(local.batches(3, seed=0))["a"].tolist()
    True
    """
    if not isinstance(memory, Integral) or memory < 1:
        raise FarshiftError(f"memory must be a number of bytes, at least 1, not {memory!r}")
    refuse_labels(f"a stream of {name}")
    manifest = find_manifest(name)
    data = find_manifest_source(manifest)
    if part not in manifest.definition.parts:
        raise UnknownName(f"part of {manifest.full_name}", part, manifest.definition.parts)
    label, most, location = manifest.definition.label, data.definition.rows, resolve_location(source)
    store: Store
    if isinstance(location, ExportFolder):
        export = read_export(location, data.schema, label, most)
        known = _make_known_part(
            manifest, data, part, _prove_by_index(export.index, export.manifest, manifest, part, export.name)
        )
        shards, memory = cache_in_memory(export.shards, memory)
        store = ShardStore.open(export.index, shards, data.schema, label)
        positions = _find_positions(known, export.index["row_id"].to_numpy(), export.name)
        return StreamedPart.of(known, store, positions, memory)
    files, memory = cache_in_memory(location, memory)
    known = _make_known_part(manifest, data, part, None)
    tables = ParquetFiles.open(files, data.schema)
    index = _locate_rows(known, tables, most, memory)
    sizes, occurrences, numbers = (index[name].to_numpy() for name in ("size", "occurrence", "number"))
    store = ParquetStore(files, sizes, occurrences, tables, numbers)
    return StreamedPart.of(known, store, np.arange(len(known)), memory)


def find_manifest_source(manifest: Manifest) -> DataSource:
    """Return the source of a manifest, without reading its rows. Raises `BadDefinition` if it is not frozen."""
    if not manifest.frozen:
        raise BadDefinition(f"{manifest.full_name} is a definition that is not frozen yet: it has no rows to stream")
    return find_pinned_source(manifest)


def _find_positions(known: Part, row_ids: NDArray[np.uint64], where: str) -> NDArray[np.int64]:
    """The positions of a part's rows in `row_ids`. Raises `BadData` if some are absent."""
    _check_complete(known, np.flatnonzero(~np.isin(known.row_ids, row_ids)), where)
    order = np.argsort(row_ids, kind="stable")
    positions: NDArray[np.int64] = order[np.searchsorted(row_ids, known.row_ids, sorter=order)]
    return positions


def _check_complete(known: Part, missing: NDArray[np.intp], where: str) -> None:
    if len(missing):
        raise BadData(
            f"{where} lacks {len(missing):,} of {len(known):,} rows of {known.split}, {known.name} (first: "
            f"{known.row_ids[missing[0]]:016x}): it has other rows, or is damaged"
        )


def _locate_rows(known: Part, files: ParquetFiles, most: int, memory: int) -> pa.Table:
    """Find a part's rows, of a source of `most` rows, in files: their `number`, `occurrence` and mean decoded `size` in
    bytes.

    The files are read until all rows are found; the result is cached by the files' identities. Raises `BadData` if some
    are absent."""

    def find() -> pa.Table:
        return _scan_for_rows(known, files, most, memory)

    identities = [file.identity for file in files.files]
    if None in identities:
        return find()
    of = {"of": known.identity, "part": known.name, "files": identities, "fields": known.schema.records()}
    stem = f"{known.split.partition('@')[0].replace('/', '-')}-{known.name}"
    path = get_cache_root() / "splits" / f"{stem}-found-{compute_identity(of)[:32]}.arrow"
    return load_or_build_table(path, find)


def _scan_for_rows(known: Part, files: ParquetFiles, most: int, memory: int) -> pa.Table:
    import pyarrow as pa

    matching = RowMatcher(known.row_ids, known.source["check"].to_numpy(), files.schema, most)
    label, remaining = f"finding the rows of {known.split}, {known.name}", len(known)
    sizes = np.zeros(len(known), np.int64)
    with closing(files.scan(memory)) as scan:
        for first, table in scan:
            rows = matching.match(table, first)
            # A footer has only encoded sizes, which can be far smaller than the rows in memory.
            sizes[rows] = table.nbytes // max(1, table.num_rows) + 1
            remaining -= len(rows)
            report_progress(label, len(known) - remaining, len(known))
            if not remaining:
                break
    where = f"{files.files[0].name}{' ..' if len(files.files) > 1 else ''}"
    _check_complete(known, np.flatnonzero(matching.where < 0), where)
    return pa.table({"size": sizes, "number": matching.where, "occurrence": matching.occurrence})


class RowMatcher:
    """Finds the rows with these ids and checks (shape (rows,)), of a source of `most` rows, in a stream: `where` is the
    number of the row in the stream (-1 until it is found) and `occurrence` its occurrence number.

    A row's check selects the part's rows that it can be; its inputs and an occurrence number then have to give that
    row's id. Rows with the same check are equal in all fields, so it does not matter which of them gets which number.
    """

    def __init__(self, row_ids: NDArray[np.uint64], checks: NDArray[np.uint64], schema: Schema, most: int) -> None:
        self.where = np.full(len(row_ids), -1, np.int64)
        self.occurrence = np.zeros(len(row_ids), np.int64)
        self._row_ids, self._schema, self._most = row_ids, schema, most
        self._order = np.argsort(checks, kind="stable")
        self._checks = checks[self._order]
        self._used = np.zeros(len(row_ids), np.int64)  # at the first row of each check: how many were found

    def match(self, table: pa.Table, first: int) -> NDArray[np.int64]:
        """Process rows with all fields of the source, numbered from `first`. Returns the part's rows that were found.
        Raises `BadData` for a row whose inputs do not give the id."""
        checks = get_digest_prefixes(compute_row_digests(table, self._schema))
        begins, ends = np.searchsorted(self._checks, checks, "left"), np.searchsorted(self._checks, checks, "right")
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


def _make_known_part(manifest: Manifest, source: DataSource, part: str, rows: pa.Table | None) -> Part:
    """Make the part that is known before its source's rows are read: a `Part` whose source has only `row_id` and
    `check`.

    `rows` are the manifest's rows (row_id, check, part, weight, group, severity, label override) if they were verified
    by an export. Raises `Unavailable` if they are None and not known otherwise.
    """
    import pyarrow.compute as pc

    all_rows = _find_known_rows(manifest, source, part) if rows is None else rows
    part_rows = all_rows.filter(pc.equal(all_rows["part"], part)).sort_by("row_id").combine_chunks()
    if "place" in part_rows.column_names:
        part_rows = part_rows.drop_columns(["place"])
    part_rows = part_rows.append_column("place", [np.arange(part_rows.num_rows)])
    return Split(manifest, source, part_rows.select(["row_id", "check"]), part_rows).part(part)


def _find_known_rows(manifest: Manifest, source: DataSource, part: str) -> pa.Table:
    """The manifest's rows that it ships, or those in the cache of a pulled split."""
    if manifest.definition.ships_rows:
        return manifest.rows(source.schema.arrow().empty_table(), source.schema)

    def refuse() -> pa.Table:
        raise Unavailable(
            f"{manifest.full_name}: its rows are computed from its source and not known on this machine: stream an "
            f"export of the part, or run farshift splits pull {manifest.name} once"
        )

    path = make_assignment_path(manifest, source)
    if is_intact(path):
        rows = load_or_build_table(path, refuse)
        if _has_published_digest(rows, manifest, part):
            return rows
    return refuse()


def _prove_by_index(
    index: pa.Table, metadata: dict[str, Any], manifest: Manifest, part: str, where: str
) -> pa.Table | None:
    """The manifest's rows by the index of an export; None if it is of another part. Raises `BadData` if it claims to be
    of this part but has other rows."""
    pin = manifest.definition.parts[part]
    if (metadata.get("identity"), metadata.get("part"), metadata.get("rows")) != (manifest.identity, part, pin.rows):
        return None
    rows = make_manifest_rows(index, part)
    if not _has_published_digest(rows, manifest, part):
        raise BadData(
            f"{where} does not have the published rows of {manifest.full_name}, {part}: it was modified, export it "
            "again"
        )
    return rows


def _has_published_digest(rows: pa.Table, manifest: Manifest, part: str) -> bool:
    digest = compute_part_digests(rows).get(part, {}).get("digest")
    return bool(digest == manifest.definition.parts[part].digest)
