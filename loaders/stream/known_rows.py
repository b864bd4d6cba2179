"""Find the rows of a part without its source, and verify them.

They come from an export (whose index or rows have to give the part's pinned digest), from the manifest if it ships
them, or from the cache of a split that was pulled before. Only the digest is trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.canonical import compute_identity
from ...core.errors import BadData, Unavailable
from ...core.files import get_cache_root
from ...splits.assignment import compute_part_digests
from ...splits.manifest import Manifest
from ...splits.rows import compute_row_digests, get_digest_prefixes
from ..acquire.source import Source
from ..cache.store import is_intact, load_or_build_table
from ..export.checksums import TYPES, make_manifest_rows
from ..part import Part
from ..remote.exported import Export
from ..remote.parquet import ParquetFiles, scan_rows
from ..split import Split, make_assignment_path

if TYPE_CHECKING:
    import pyarrow as pa

_CHANGED = "it was modified, export it again"


def make_known_part(manifest: Manifest, source: Source, part: str, rows: pa.Table | None) -> Part:
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


def prove_by_index(export: Export, manifest: Manifest, part: str) -> pa.Table | None:
    """Return the manifest's rows from the index of WebDataset shards; None if the shards are of another part. Raises
    `BadData` if they claim to be of this part but have other rows."""
    if not _is_export_of(export.manifest, manifest, part):
        return None
    return _check_digest(make_manifest_rows(export.index, part), manifest, part, export.name)


def prove_by_parquet(
    files: ParquetFiles, manifest: Manifest, source: Source, part: str, memory: int
) -> pa.Table | None:
    """Return the manifest's rows from a Parquet file that `Part.to_parquet` wrote, read once; None and `BadData` as in
    `prove_by_index`."""
    if len(files.files) != 1 or not _is_export_of(files.export_metadata()[0], manifest, part):
        return None
    name, file_identity = files.files[0].name, files.files[0].identity

    def read() -> pa.Table:
        return _check_digest(_read_exported_rows(files, source, part, memory), manifest, part, name)

    if file_identity is None:
        return read()
    key = compute_identity({"rows of": manifest.identity, "part": part, "file": file_identity})[:32]
    return load_or_build_table(
        get_cache_root() / "splits" / f"{manifest.name.replace('/', '-')}-{part}-rows-{key}.arrow", read
    )


def _is_export_of(metadata: dict[str, Any], manifest: Manifest, part: str) -> bool:
    pin = manifest.definition.parts[part]
    return (metadata.get("identity"), metadata.get("part"), metadata.get("rows")) == (manifest.identity, part, pin.rows)


def _read_exported_rows(files: ParquetFiles, source: Source, part: str, memory: int) -> pa.Table:
    """The manifest's rows by an exported file's own columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fields = source.schema.fields
    names = [field.name for field in fields]
    carried = [name for name in ("row_id", "weight", "group", "severity") if name in files.names]
    if "row_id" not in carried or not files.rows:
        raise BadData(f"{files.files[0].name} has no rows with a row_id: {_CHANGED}")
    pieces = []
    for first, batch in scan_rows(files, [*names, *carried], memory):
        own = files.typed(first, batch, fields)
        piece = pa.table({name: batch[name] for name in carried})
        for name, column in zip(carried, piece.columns, strict=True):
            if str(column.type) not in TYPES[name] or column.null_count:
                raise BadData(
                    f"{files.describe_location(first)}: column {name!r} is not {' or '.join(TYPES[name])}: {_CHANGED}"
                )
        piece = piece.append_column("check", [get_digest_prefixes(compute_row_digests(own, source.schema))])
        if files.true_labels is not None:
            given = batch[files.label]
            piece = piece.append_column("label", pc.if_else(files.replaced(first, len(given)), given, None))
        pieces.append(piece)
    return make_manifest_rows(pa.concat_tables(pieces), part)


def _check_digest(rows: pa.Table, manifest: Manifest, part: str, where: str) -> pa.Table:
    if not _has_published_digest(rows, manifest, part):
        raise BadData(f"{where} does not have the published rows of {manifest.full_name}, {part}: {_CHANGED}")
    return rows


def _has_published_digest(rows: pa.Table, manifest: Manifest, part: str) -> bool:
    digest = compute_part_digests(rows).get(part, {}).get("digest")
    return bool(digest == manifest.definition.parts[part].digest)


def _find_known_rows(manifest: Manifest, source: Source, part: str) -> pa.Table:
    """The manifest's rows that it ships, or those in the cache of a pulled split."""
    if manifest.definition.ships_rows:
        return manifest.rows(source.schema.arrow().empty_table(), source.schema)
    path = make_assignment_path(manifest, source)
    if is_intact(path):
        rows = load_or_build_table(path, lambda: _raise_unknown(manifest))
        if _has_published_digest(rows, manifest, part):
            return rows
    return _raise_unknown(manifest)


def _raise_unknown(manifest: Manifest) -> pa.Table:
    raise Unavailable(
        f"{manifest.full_name}: its rows are computed from its source and not known on this machine: stream an export "
        f"of the part, or run farshift splits pull {manifest.name} once"
    )
