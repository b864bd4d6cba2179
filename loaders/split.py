"""Open a split: join its manifest with its source's rows, and verify every row."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import BadData, UnknownName
from ..core.files import get_cache_root
from ..core.label_access import refuse_labels
from ..splits.assignment import PARTS
from ..splits.catalogue import find_manifest
from ..splits.manifest import Manifest
from .acquire.source import Source, find_row_positions, find_source
from .cache.store import Verify, is_intact, load_or_build_table, use_verify_mode
from .part import Part

if TYPE_CHECKING:
    import pyarrow as pa

_HELD_OUT = ("id_val", "id_test")
"""The parts that a benchmark holds out of `train` if its split does not have them."""
_logger = logging.getLogger("farshift")
_announced: set[str] = set()


@dataclass(frozen=True)
class Split:
    """An opened split."""

    manifest: Manifest
    source: Source
    rows: pa.Table
    assigned: pa.Table

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts, train first."""
        return tuple(name for name in PARTS if name in self.manifest.definition.parts)

    def part(self, name: str) -> Part:
        """Return a part. Raises `UnknownName`, which lists the parts, for an unknown name."""
        import pyarrow.compute as pc

        if name not in self.parts:
            held_out = f'(for rows held out by a benchmark: fs.benchmark("{self.manifest.name}").load("{name}"))'
            hint = held_out if name in _HELD_OUT else ""
            raise UnknownName(f"part of {self.manifest.full_name}", name, self.parts, hint)
        definition = self.manifest.definition
        part_rows = self.assigned.filter(pc.equal(self.assigned["part"], name))
        row_metadata = {
            key: _to_numpy(part_rows[key]) for key in ("weight", "group", "severity") if key in part_rows.column_names
        }
        override = None
        if "label" in part_rows.column_names and part_rows["label"].null_count < part_rows.num_rows:
            present = part_rows["label"].is_valid().to_numpy(zero_copy_only=False)
            filled = part_rows["label"].fill_null("" if str(part_rows["label"].type) == "string" else 0)
            override = np.ma.MaskedArray(_to_numpy(filled), mask=~present)
        return Part(
            split=self.manifest.full_name,
            identity=self.manifest.identity,
            name=name,
            schema=self.source.schema,
            label=definition.label,
            source=self.rows,
            source_indices=part_rows["place"].to_numpy(),
            row_metadata=row_metadata,
            override=override,
            label_names=tuple(definition.label_names or self.source.class_names(definition.label)),
        )


def _to_numpy(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = column.to_numpy()
    return values


def find_pinned_source(manifest: Manifest) -> Source:
    """Return the source of a frozen manifest, without reading its rows. Raises `BadData` if another version of it is
    installed, or if the manifest was changed."""
    pin = manifest.definition.source
    source = find_source(pin.name)
    if (source.definition.version, source.definition.digest) != (pin.version, pin.digest):
        raise BadData(
            f"{manifest.full_name} requires source {pin.name} version {pin.version} ({pin.digest[:12]}..), "
            f"but {source.path.name} defines version {source.definition.version} ({source.definition.digest[:12]}..)"
        )
    manifest.check_identity()
    return source


def open_split(name: str, own_folders: tuple[Path, ...] = ()) -> Split:
    """Open the split `name` or `name@version`; it is pulled, verified and cached first if needed. A definition is
    frozen in the user's home when it is first pulled."""
    refuse_labels(f"split {name}")
    manifest = find_manifest(name)
    if not manifest.frozen:
        from .freezing.first_use import freeze_on_first_use

        manifest = freeze_on_first_use(manifest, own_folders)
    source = find_pinned_source(manifest)
    rows = source.table(own_folders).replace_schema_metadata()
    assigned = load_or_build_table(
        make_assignment_path(manifest, source),
        lambda: place_rows(manifest.rows(rows, source.schema), rows, manifest.full_name),
    )
    return Split(manifest, source, rows, assigned)


def is_cached(manifest: Manifest) -> bool:
    """Whether a frozen manifest's rows are in the cache, so that `open_split` only maps them."""
    pin = manifest.definition.source
    if not manifest.frozen:
        return False
    source = find_source(pin.name)
    return (
        (source.definition.version, source.definition.digest) == (pin.version, pin.digest)
        and is_intact(source.cached_at)
        and is_intact(make_assignment_path(manifest, source))
    )


def make_assignment_path(manifest: Manifest, source: Source) -> Path:
    """Return the cache path of a frozen manifest's rows with their positions in the source."""
    shape = source.cached_at.stem.rpartition("-")[2]
    return get_cache_root() / "splits" / f"{manifest.name.replace('/', '-')}-{manifest.identity[:16]}-{shape}.arrow"


def make_split(manifest: Manifest, source: Source, rows: pa.Table, assigned: pa.Table) -> Split:
    """Make a split from the rows that its rule `assigned`, over `rows` (with `row_id` and `check`) of its source."""
    rows = rows.replace_schema_metadata()
    return Split(manifest, source, rows, place_rows(assigned, rows, manifest.full_name))


def place_rows(assigned: pa.Table, rows: pa.Table, what: str) -> pa.Table:
    """Return a manifest's rows in ascending row id with `place`, the position of each in its source's table."""
    return assigned.append_column("place", [find_row_positions(assigned, rows, what)]).sort_by("row_id")


def load(name: str, part: str = "train", mirror: Path | str | None = None, verify: Verify | None = None) -> Part:
    """Load one part of a split, verified and memory-mapped: `load("scan/length", part="train")`. A benchmark on it may
    hold rows of training out for its ID test: `fs.benchmark(NAME).load("train")` gives what its protocol trains on. The
    logger `farshift` says so once, for a split that lacks `id_val` or `id_test`.

    mirror: a folder searched first for the source's files (by sha256). verify: when stored files are compared with
    their checksums: "always", at the first "open" in a process (the default, unless `FARSHIFT_VERIFY` is set), or
    "never" as long as size, time and inode are unchanged. Raises a `FarshiftError` of one line for an unknown name,
    version or part, and for data that are not available or do not match their digest.

    >>> import farshift as fs
    >>> part = fs.load("modadd97/xi35")
    >>> part
    Part(modadd97/xi35@1, train: 4,704 rows; a, b, sum, row_id, corrupted)
    >>> part[0]
    {'a': 47, 'b': 24, 'sum': 71, 'row_id': 3308743156776566, 'corrupted': False}
    """
    folders = () if mirror is None else (Path(mirror),)
    with use_verify_mode(verify):
        split = open_split(name, folders)
        rows = split.part(part)
    _announce_holdouts(split, part)
    return rows


def _announce_holdouts(split: Split, part: str) -> None:
    """Log once per split that a benchmark trains on fewer rows than `train` has."""
    name = split.manifest.name
    missing = [other for other in _HELD_OUT if other not in split.parts]
    if part != "train" or not missing or name in _announced:
        return
    _announced.add(name)
    _logger.warning(
        'train of %s: a benchmark may hold rows of it out for %s; fs.benchmark("%s").load("train") gives the rows that '
        "its protocol trains on",
        *(name, " and ".join(missing), name),
    )
