"""Open a part as a stream, from its manifest and the files that contain its rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition, FarshiftError, UnknownName
from ...core.label_access import refuse_labels
from ...splits.catalogue import find_manifest
from ...splits.manifest import Manifest
from ..acquire.source import Source as DataSource
from ..acquire.source import find_source
from ..part import Part
from ..remote import File, Store, tars
from ..remote.cached_files import cache_in_memory
from ..remote.exported import read_export
from ..remote.parquet import ParquetFiles, ParquetStore, scan_rows
from ..remote.shards import ShardStore
from ..remote.sources import ExportFolder, Source, resolve_location
from .known_rows import make_known_part, prove_by_index, prove_by_parquet
from .part import StreamedPart
from .scan import RowIterator, locate_rows

MEMORY = 1 << 28
"""The maximum bytes of rows of an iterator, prefetched or yielded."""


def stream(name: str, part: str, source: Source, memory: int = MEMORY) -> StreamedPart:
    """Open a part without downloading it: `stream("scan/length", "train", "https://example.org/shards")`.

    `source` is a folder that `Part.to_webdataset` wrote (its path, an https address, or
    `hf://datasets/owner/name@revision/path`), or Parquet or WebDataset files of the data set (paths, addresses or
    patterns, one or several). A Hub revision is resolved to its commit once, here. An iterator has at most `memory`
    bytes of rows in memory; remote files that take at most three quarters of it are cached in memory and fetched once.

    With the index of an export, only the byte ranges of the needed rows are read. Files without an index are read once
    completely to find the part's rows; the positions are cached as long as the files are unchanged.

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
    if memory < 1:
        raise FarshiftError(f"memory must be at least 1 byte, not {memory}")
    refuse_labels(f"a stream of {name}")
    manifest = find_manifest(name)
    data = find_manifest_source(manifest)
    if part not in manifest.definition.parts:
        raise UnknownName(f"part of {manifest.full_name}", part, manifest.definition.parts)
    label, location = manifest.definition.label, resolve_location(source)
    store: Store
    if isinstance(location, ExportFolder):
        export = read_export(location, data.schema, label, data.definition.rows)
        rows = prove_by_index(export, manifest, part)
        known = make_known_part(manifest, data, part, rows)
        shards, memory = cache_in_memory(export.shards, memory)
        store = ShardStore.of(export.index, shards, data.schema, label)
        positions = _find_positions(known, export.index["row_id"].to_numpy(), export.name)
    else:
        cached_files, memory = cache_in_memory(location.files, memory)
        if location.sort == "parquet":
            files = ParquetFiles.open(cached_files, data.schema, label)
            rows = prove_by_parquet(files, manifest, data, part, memory)
            known = make_known_part(manifest, data, part, rows)
            store = _open_parquet_store(known, files, data.definition.rows, memory)
        else:
            known = make_known_part(manifest, data, part, None)
            store = _open_tar_store(known, cached_files, data.definition.rows, memory)
        positions = np.arange(len(known))
    return StreamedPart(known, store, positions, memory, np.zeros(len(known), bool))


def _open_tar_store(known: Part, files: tuple[File, ...], of: int, memory: int) -> Store:
    """Make the store of a part's rows, of a source of `rows` rows, in shards without an index."""
    index = locate_rows(known, files, of, lambda: tars.scan_samples(files, known.schema, memory))
    return ShardStore.of(index, files, known.schema, known.label)


def _open_parquet_store(known: Part, files: ParquetFiles, of: int, memory: int) -> Store:
    """Make the store of a part's rows, of a source of `rows` rows, in Parquet files."""
    import pyarrow as pa

    fields = known.schema.fields
    names = [field.name for field in fields]

    def passing() -> RowIterator:
        for first, batch in scan_rows(files, names, memory):
            table = files.typed(first, batch, fields)
            # A footer has only encoded sizes, which can be far smaller than the rows in memory.
            mean = table.nbytes // max(1, table.num_rows) + 1
            yield first, table, pa.table({"size": np.full(table.num_rows, mean)})

    where = locate_rows(known, files.files, of, passing)
    return ParquetStore(files, *(where[name].to_numpy() for name in ("number", "size", "occurrence")))


def find_manifest_source(manifest: Manifest) -> DataSource:
    """Return the source of a frozen manifest, without reading its rows."""
    if not manifest.frozen:
        raise BadDefinition(f"{manifest.full_name} is a definition that is not frozen yet: it has no rows to stream")
    manifest.check_identity()
    pin = manifest.definition.source
    source = find_source(pin.name)
    if (source.definition.version, source.definition.digest) != (pin.version, pin.digest):
        raise BadData(f"{manifest.full_name} requires another version of source {pin.name} than the installed one")
    return source


def _find_positions(known: Part, row_ids: NDArray[np.uint64], where: str) -> NDArray[np.int64]:
    """The positions of a part's rows in `row_ids`. Raises `BadData` if some are absent."""
    order = np.argsort(row_ids, kind="stable")
    turns = np.minimum(np.searchsorted(row_ids[order], known.row_ids), max(0, len(order) - 1))
    absent = known.row_ids != row_ids[order][turns] if len(order) else np.ones(len(known), bool)
    if absent.any():
        raise BadData(
            f"{where} lacks {int(absent.sum()):,} of {len(known):,} rows of {known.split}, {known.name} (first: "
            f"{known.row_ids[absent][0]:016x}): it has other rows"
        )
    places: NDArray[np.int64] = order[turns]
    return places
