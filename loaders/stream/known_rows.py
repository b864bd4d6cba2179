"""A manifest's rows without its source: which rows a part has, and what proves it.

They come from what was exported (whose index or rows must recompute to the part's pinned digest), from the manifest
where it ships them, or from the cache of a copy that was pulled once. Nothing of them is trusted: the digest is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.canonical import identity_of
from ...core.errors import BadData, Unavailable
from ...core.files import cache_root
from ...splits.assignment import part_digests
from ...splits.manifest import Manifest
from ...splits.rows import heads, row_digests
from ..acquire.source import Source
from ..cache.store import intact, stored_table
from ..export.checksums import TYPES, assigned
from ..part import Part
from ..remote.exported import Export
from ..remote.parquet import ParquetFiles, scan
from ..split import Split, assigned_at

if TYPE_CHECKING:
    import pyarrow as pa

_CHANGED = "it was changed, export it anew"


def known_part(manifest: Manifest, source: Source, part: str, rows: pa.Table | None) -> Part:
    """What is known of a part before its source's rows are read: a `Part` whose source has `row_id` and `check` alone.

    `rows` are the manifest's (row_id, check, part, weight, group, severity, label override) where something has proven
    them. `Unavailable` where they are known from nowhere else.
    """
    import pyarrow.compute as pc

    held = _known_rows(manifest, source, part) if rows is None else rows
    mine = held.filter(pc.equal(held["part"], part)).sort_by("row_id").combine_chunks()
    if "place" in mine.column_names:
        mine = mine.drop_columns(["place"])
    mine = mine.append_column("place", [np.arange(mine.num_rows)])
    return Split(manifest, source, mine.select(["row_id", "check"]), mine).part(part)


def proven_by_index(export: Export, manifest: Manifest, part: str) -> pa.Table | None:
    """The manifest's rows out of the index of WebDataset shards; None where the shards are not of this very part,
    `BadData` where they say that they are and their rows are not the published ones."""
    if not _of(export.said, manifest, part):
        return None
    return _held_to_digest(assigned(export.index, part), manifest, part, export.name)


def proven_by_parquet(
    files: ParquetFiles, manifest: Manifest, source: Source, part: str, memory: int
) -> pa.Table | None:
    """The manifest's rows out of the rows of a Parquet file that `Part.to_parquet` wrote, read through once; None and
    `BadData` as for an index."""
    if len(files.files) != 1 or not _of(files.said()[0], manifest, part):
        return None
    name, told = files.files[0].name, files.files[0].identity

    def read() -> pa.Table:
        return _held_to_digest(_exported(files, source, part, memory), manifest, part, name)

    if told is None:
        return read()
    key = identity_of({"rows of": manifest.identity, "part": part, "file": told})[:32]
    return stored_table(cache_root() / "splits" / f"{manifest.name.replace('/', '-')}-{part}-rows-{key}.arrow", read)


def _of(said: dict[str, Any], manifest: Manifest, part: str) -> bool:
    pin = manifest.definition.parts[part]
    return (said.get("identity"), said.get("part"), said.get("rows")) == (manifest.identity, part, pin.rows)


def _exported(files: ParquetFiles, source: Source, part: str, memory: int) -> pa.Table:
    """The manifest's rows as an exported file's own columns say."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fields = source.schema.fields
    names = [field.name for field in fields]
    carried = [name for name in ("row_id", "weight", "group", "severity") if name in files.names]
    if "row_id" not in carried or not files.rows:
        raise BadData(f"{files.files[0].name} has no rows with a row_id: {_CHANGED}")
    pieces = []
    for first, batch in scan(files, [*names, *carried], memory):
        own = files.typed(first, batch, fields)
        piece = pa.table({name: batch[name] for name in carried})
        for name, column in zip(carried, piece.columns, strict=True):
            if str(column.type) not in TYPES[name] or column.null_count:
                raise BadData(f"{files.place(first)}: column {name!r} is not {' or '.join(TYPES[name])}: {_CHANGED}")
        piece = piece.append_column("check", [heads(row_digests(own, source.schema))])
        if files.true_labels is not None:
            given = batch[files.label]
            piece = piece.append_column("label", pc.if_else(files.replaced(first, len(given)), given, None))
        pieces.append(piece)
    return assigned(pa.concat_tables(pieces), part)


def _held_to_digest(rows: pa.Table, manifest: Manifest, part: str, where: str) -> pa.Table:
    if not _published(rows, manifest, part):
        raise BadData(f"{where} does not hold the published rows of {manifest.full_name}, {part}: {_CHANGED}")
    return rows


def _published(rows: pa.Table, manifest: Manifest, part: str) -> bool:
    found = part_digests(rows).get(part, {}).get("digest")
    return bool(found == manifest.definition.parts[part].digest)


def _known_rows(manifest: Manifest, source: Source, part: str) -> pa.Table:
    """The manifest's rows as it ships them, or as the cache has them of a pulled copy."""
    if manifest.definition.ships_rows:
        return manifest.rows(source.schema.arrow().empty_table(), source.schema)
    path = assigned_at(manifest, source)
    if intact(path):
        rows = stored_table(path, lambda: _unknown(manifest))
        if _published(rows, manifest, part):
            return rows
    return _unknown(manifest)


def _unknown(manifest: Manifest) -> pa.Table:
    raise Unavailable(
        f"{manifest.full_name}: which rows it has is made from its source, and not known here: stream an export of the "
        f"part, which proves its rows, or run farshift splits pull {manifest.name} once"
    )
