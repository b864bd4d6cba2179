"""Freezing a split: from a definition to a published manifest folder."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
from pydantic import model_validator

from ...core.errors import BadData, BadDefinition, FarshiftError
from ...core.family import read_family
from ...core.files import locked, write_atomically
from ...core.listings.inline import inline
from ...core.plugins import PACKAGE, also
from ...core.progress import advance, say
from ...splits.assignment import part_digests
from ...splits.audit import audit
from ...splits.audit.verdict import remedy, undeclared, verdict
from ...splits.catalogue import LOCK, named
from ...splits.catalogue import published_identities as locked_identities
from ...splits.manifest import Manifest, PartPin, SplitDefinition, assign, read_manifest, rule_of
from ...splits.rows import row_digests, set_digest
from ..acquire.fetch import fetch_file
from ..acquire.own_data import Data
from ..acquire.own_source import pin_source
from ..acquire.source import Source, find_source
from .check_labels import check_labels

if TYPE_CHECKING:
    import pyarrow as pa

_LOCK_HEAD = (
    "# Identities of the published manifests. A published version never changes; a correction is a new version.\n"
)


class Draft(SplitDefinition):
    """A definition to be frozen. `data` pins a source of the user's own on the way, called as the split is before its
    slash where `source` does not name it; `benchmark` is what a benchmark on the split says beyond it."""

    data: Data | None = None
    benchmark: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _own_source(cls, said: Any) -> Any:
        if isinstance(said, dict) and said.get("data") and "source" not in said and isinstance(said.get("name"), str):
            return {**said, "source": {"name": said["name"].split("/")[0]}}
        return said


def freeze(path: Path, out: Path, engine: str = "local") -> tuple[Manifest, dict[str, Any]]:
    """Build the one split that a file describes; see `freeze_draft`."""
    drafted = drafts(path)
    if len(drafted) > 1:
        raise BadDefinition(f"{path} describes {len(drafted)} splits, not one")
    return freeze_draft(drafted[0], path, out, engine)


def drafts(path: Path) -> list[Draft]:
    """The drafts of a `split.toml`, or of a family of them."""
    found = read_family(path, Draft)
    for draft in found:
        if draft.files and not draft.ships_rows:
            raise BadDefinition(f"{path}: a split that is read from published files must have ships_rows = true")
    return found


def freeze_each(
    drafted: list[tuple[Draft, Path]], out: Path, engine: str = "local"
) -> tuple[list[dict[str, Any]], list[FarshiftError]]:
    """Freeze each draft, given with its file: a record of each that was, and why the others were refused."""
    frozen: list[dict[str, Any]] = []
    refused: list[FarshiftError] = []
    for done, (draft, path) in enumerate(drafted):
        if len(drafted) > 1:
            advance("splits", done, len(drafted))
        try:
            manifest, found = freeze_draft(draft, path, out, engine)
        except FarshiftError as error:
            refused.append(error)
            continue
        frozen.append(
            {
                "split": manifest.full_name,
                "identity": manifest.identity,
                "folder": str(manifest.folder),
                "audit": found,
            }
        )
    return frozen, refused


def freeze_draft(draft: Draft, path: Path, out: Path, engine: str = "local") -> tuple[Manifest, dict[str, Any]]:
    """Build the split that a draft, read from `path`, describes, into `out/<source>/<split>/v<N>/`. Refuses a split
    whose audit says that it does not hold the shift it names, and to change a version that is published. `engine` is
    where the rows of a large source are hashed."""
    if draft.data is None:
        return freeze_from(draft, find_source(draft.source.name), out, engine)
    labels = [field for field, (_, role) in draft.data.columns().items() if role == "label"]
    if draft.label not in labels:
        raise BadDefinition(f"{path}: label = {draft.label!r} is none of the labels of [data]: {', '.join(labels)}")
    home = out.resolve().parent.parent
    if out.resolve() != home / "splits" / "manifests":
        raise BadDefinition(f"{path} has a table [data]: its source is kept too, so --out must end in splits/manifests")
    home.mkdir(parents=True, exist_ok=True)
    with also(home):
        rule_of(draft)  # before the data are read, which may take long
        source = pin_source(draft.data, draft.source.name, path.parent, home, engine)
        names = draft.label_names or source.class_names(draft.label)
        return freeze_from(draft.model_copy(update={"label_names": names}), source, out, engine)


def freeze_from(
    draft: Draft,
    source: Source,
    out: Path,
    engine: str = "local",
    own_folders: tuple[Path, ...] = (),
    keep_flaws: bool = False,
) -> tuple[Manifest, dict[str, Any]]:
    """Build the split that a draft describes from its source, as `freeze_draft` does. `keep_flaws`: inputs that
    stand in training and elsewhere, and tokens of a compositional test that training never shows, are declared as they
    are counted, instead of being refused."""
    rule_of(draft)
    rows = source.table(own_folders, engine)
    if not source.definition.digest:
        digest = set_digest(row_digests(rows.select([f.name for f in source.schema.fields]), source.schema))
        raise BadDefinition(
            f'{source.path} is not pinned yet: below its version, add rows = {rows.num_rows} and digest = "{digest}", '
            "and repeat the command"
        )
    bare = SplitDefinition.model_validate(draft.model_dump(exclude={"data", "benchmark", "identity", "parts"}))
    assigned = assign(bare, rows, source.schema, {pin.name: fetch_file(pin, own_folders) for pin in bare.files})
    pins = {name: PartPin(**pin) for name, pin in part_digests(assigned).items()}
    _refuse_empty(bare, pins)
    if not keep_flaws:
        check_labels(bare, source, rows, assigned)
    pin = bare.source.model_copy(update={"version": source.definition.version, "digest": source.definition.digest})
    frozen = bare.model_copy(update={"parts": pins, "source": pin})
    frozen = frozen.model_copy(update={"identity": frozen.computed_identity()})
    found = audit(frozen, rows, assigned, source.schema)
    if keep_flaws and (flaws := undeclared(frozen, found)):
        frozen = frozen.model_copy(update={"declared": frozen.declared.model_copy(update=flaws)})
        found["holds"], found["why"] = verdict(frozen, found)
        say(f"{frozen.name} keeps the flaws of what was published: {flaws}")
    if not found["holds"]:
        raise BadData(
            f"{frozen.name}@{frozen.version} does not hold the shift it names: {found['why']}{_remedy(frozen, found)}"
        )
    if not any(name.endswith("_test") for name in pins):
        raise BadDefinition(f"{frozen.name}: the rule puts no row in a test part; parts: {', '.join(pins)}")
    folder = out / frozen.name / f"v{frozen.version}"
    _refuse_change(folder, frozen)
    if frozen.ships_rows:
        write_atomically(folder / "rows.parquet", _parquet(assigned))
    write_audit(folder, found)
    content = tomli_w.dumps(
        frozen.model_dump(exclude_none=True, exclude_defaults=True) | {"format": 1}, multiline_strings=True
    )
    write_atomically(folder / "split.toml", content.encode())
    if out.resolve() == (PACKAGE / "splits" / "manifests").resolve():
        _lock(frozen)
    return read_manifest(folder / "split.toml"), found


def _remedy(frozen: SplitDefinition, found: dict[str, Any]) -> str:
    """The line of a draft that declares the flaws that a split was refused for."""
    declared, left = remedy(frozen, found)
    if not declared:
        return ""
    line = f"; where this is meant, the draft says declared = {inline(declared)}"
    return line + (f", and even so: {left}" if left else "")


def _refuse_empty(definition: SplitDefinition, pins: dict[str, PartPin]) -> None:
    if "train" not in pins:
        raise BadDefinition(f"{definition.name}: the rule puts no row in train; parts: {', '.join(pins) or 'none'}")
    expected = definition.published.rows if definition.published else {}
    for name, count in expected.items():
        got = pins[name].weighted_rows if name in pins else 0
        if got != count:
            raise BadDefinition(
                f"{definition.name}: part {name} has {got} rows (copies counted), published were {count}"
            )


def _refuse_change(folder: Path, frozen: SplitDefinition) -> None:
    full_name = f"{frozen.name}@{frozen.version}"
    for known in named(frozen.name):
        if known.frozen and known.full_name == full_name and known.folder.resolve() != folder.resolve():
            raise BadDefinition(f"{full_name} is published already, in {known.folder}: give yours another name")
    published = locked_identities().get(f"{frozen.name}@{frozen.version}")
    here = folder / "split.toml"
    if here.exists() and (old := read_manifest(here)).frozen:
        published = published or old.identity
    if published and published != frozen.identity:
        raise FarshiftError(
            f"{frozen.name}@{frozen.version} is published with other rows, and a published version never changes: "
            f"make it version {frozen.version + 1}"
        )


def write_audit(folder: Path, found: dict[str, Any]) -> None:
    """Write an audit beside its `split.toml`."""
    write_atomically(folder / "audit.json", (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode())


def _lock(frozen: SplitDefinition) -> None:
    """Add a manifest of the package to `manifests.lock`."""
    with locked(LOCK):
        identities = locked_identities() | {f"{frozen.name}@{frozen.version}": frozen.identity}
        lines = [f"{name} {identity}\n" for name, identity in sorted(identities.items())]
        write_atomically(LOCK, "".join((_LOCK_HEAD, *lines)).encode())


def _parquet(assigned: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(assigned.sort_by("row_id"), sink, compression="zstd")
    return sink.getvalue()
