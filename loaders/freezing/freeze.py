"""Freeze a split: from a definition to a published manifest folder."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import tomli_w
from pydantic import model_validator

from ...core.errors import BadData, BadDefinition, FarshiftError, UnknownName
from ...core.files import hold_lock, write_atomically
from ...core.plugins import PACKAGE, add_plugin_folder, read_family
from ...core.progress import log_message, report_progress
from ...core.text import format_count, write_inline
from ...splits.assignment import compute_part_digests, drop_shared_inputs
from ...splits.audit import audit_split
from ...splits.audit.verdict import check_duplicates, find_remedy, find_undeclared, judge_split, suggest_change
from ...splits.catalogue import LOCK, find_manifests
from ...splits.catalogue import read_published_identities as locked_identities
from ...splits.manifest import Manifest, PartPin, SplitDefinition, assign_rows, load_rule, read_manifest
from ...splits.rows import compute_row_digests, compute_set_digest
from ..acquire.fetch import fetch_file
from ..acquire.own_data import Data
from ..acquire.own_source import lock_source, prepare_source
from ..acquire.source import Source, find_source
from .check_labels import check_labels

if TYPE_CHECKING:
    import pyarrow as pa

_LOCK_HEAD = (
    "# Identities of the published manifests. A published version never changes; a correction is a new version.\n"
)


class Draft(SplitDefinition):
    """A definition to be frozen. `data` describes a source of the user's own data, named by `source`, or by default as
    the split before its slash. `benchmark` has the settings of a benchmark on the split."""

    data: Data | None = None
    benchmark: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _own_source(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and raw.get("data") and "source" not in raw and isinstance(raw.get("name"), str):
            return {**raw, "source": {"name": raw["name"].split("/")[0]}}
        return raw


@dataclass(frozen=True)
class PreparedSplit:
    """A split that was fully checked, but not written yet.

    manifest: frozen, with its folder. rows: of its source. assigned: by the rule. files: the files to write, in this
    order; each file depends only on earlier ones, so that the same command completes a build that was killed."""

    manifest: Manifest
    source: Source
    rows: pa.Table
    assigned: pa.Table
    audit: dict[str, Any]
    files: tuple[tuple[Path, bytes], ...]

    def write(self) -> None:
        """Write the files, except those that have the same content already."""
        for path, content in self.files:
            if not path.exists() or path.read_bytes() != content:
                write_atomically(path, content)
        if not self.manifest.definition.ships_rows:  # left by an incomplete build
            (self.manifest.folder / "rows.parquet").unlink(missing_ok=True)


ExtraFiles: TypeAlias = Callable[[Draft, Path, PreparedSplit], Sequence[tuple[Path, bytes]]]
"""Additional files to write for a draft after it was checked, as a function of the resulting split."""


def freeze(path: Path, out: Path, extra_files: ExtraFiles | None = None) -> tuple[Manifest, dict[str, Any]]:
    """Build the only split of a file; see `freeze_draft`."""
    drafted = read_drafts(path)
    if len(drafted) > 1:
        raise BadDefinition(f"{path} defines {len(drafted)} splits instead of one")
    return freeze_draft(drafted[0], path, out, extra_files)


def read_drafts(path: Path) -> list[Draft]:
    """Return the drafts of a `split.toml`, or of a family of splits."""
    family = read_family(path, Draft)
    for draft in family:
        if draft.files and not draft.ships_rows:
            raise BadDefinition(f"{path}: a split that is read from published files must have ships_rows = true")
    return family


def freeze_each(
    drafted: list[tuple[Draft, Path]], out: Path, extra_files: ExtraFiles | None = None
) -> tuple[list[dict[str, Any]], list[FarshiftError]]:
    """Freeze each draft, given with its file. Returns a record of each frozen one, and the errors of the others."""
    frozen: list[dict[str, Any]] = []
    refused: list[FarshiftError] = []
    for done, (draft, path) in enumerate(drafted):
        if len(drafted) > 1:
            report_progress("splits", done, len(drafted))
        try:
            manifest, audit = freeze_draft(draft, path, out, extra_files)
        except FarshiftError as error:
            refused.append(error)
        else:
            record = {"split": manifest.full_name, "identity": manifest.identity, "folder": str(manifest.folder)}
            frozen.append(record | {"audit": audit})
    return frozen, refused


def freeze_draft(
    draft: Draft, path: Path, out: Path, extra_files: ExtraFiles | None = None
) -> tuple[Manifest, dict[str, Any]]:
    """Build the split of a draft, read from `path`, into `out/<source>/<split>/v<N>/`. Raises an error, and writes
    nothing, if the audit does not confirm the shift that the split declares, or if a published version would change.
    `extra_files` returns files to write besides the split's own."""
    home = out.resolve().parent.parent
    at_home = out.resolve() == home / "splits" / "manifests"
    for table, what in (("data", "source"), ("benchmark", "benchmark")):
        if getattr(draft, table) is not None and not at_home:
            raise BadDefinition(
                f"{path} has a table [{table}], whose {what} is stored too: --out must end in splits/manifests"
            )
    with add_plugin_folder(home) if at_home else nullcontext(), ExitStack() as locks:
        if draft.data is None:
            source = find_source(draft.source.name)
            prepared = prepare_split(_number_classes(draft, source), source, out)
        else:
            locks.enter_context(lock_source(draft.source.name, home))
            prepared = _prepare_own(draft, draft.data, path, out)
        if extra_files:
            prepared = replace(prepared, files=(*prepared.files, *extra_files(draft, path, prepared)))
        return write_prepared(prepared)


def _prepare_own(draft: Draft, data: Data, path: Path, out: Path) -> PreparedSplit:
    """Prepare the split of a draft with a [data] table. Its source's file is written before its own files."""
    labels = [field for field, (_, role) in data.columns().items() if role == "label"]
    if draft.label not in labels:
        raise BadDefinition(f"{path}: label = {draft.label!r} is not one of the labels of [data]: {', '.join(labels)}")
    load_rule(draft)  # before the data are read, which may take long
    pinned = prepare_source(data, draft.source.name, path.parent, out.resolve().parent.parent)
    source = pinned.source
    names = draft.label_names or source.class_names(draft.label)
    draft = _number_classes(draft.model_copy(update={"label_names": names}), source)
    prepared = prepare_split(draft, source, out, pinned.folders)
    if pinned.content is None:
        return prepared
    return replace(prepared, files=((source.path, pinned.content), *prepared.files))


def _number_classes(draft: Draft, source: Source) -> Draft:
    """Return a draft whose rule names classes by their numbers, which the rows have: the values that it lists for its
    `field` or `factors`. Raises `UnknownName` for a text that is neither a class nor a number."""

    def number(field: str, value: Any) -> Any:
        names = source.class_names(field)
        if not isinstance(value, str) or not names:
            return value
        if value not in names and not value.isdecimal():
            raise UnknownName(f"class of {field}", value, names)
        return str(names.index(value)) if value in names else value

    given, changes = draft.parameters, {}
    if isinstance(field := given.get("field"), str):
        lists = {key: values for key, values in given.items() if isinstance(values, list)}
        changes = {key: [number(field, value) for value in values] for key, values in lists.items()}
    factors, combinations = given.get("factors"), given.get("values")
    if isinstance(factors, list) and isinstance(combinations, list):
        changes["values"] = [
            list(map(number, factors, values)) if len(values) == len(factors) else values for values in combinations
        ]
    return draft.model_copy(update={"parameters": {**given, **changes}})


def write_prepared(prepared: PreparedSplit) -> tuple[Manifest, dict[str, Any]]:
    """Write the prepared split."""
    prepared.write()
    frozen = prepared.manifest.definition
    if prepared.manifest.folder.resolve().is_relative_to((PACKAGE / "splits" / "manifests").resolve()):
        with hold_lock(LOCK):
            identities = locked_identities() | {f"{frozen.name}@{frozen.version}": frozen.identity}
            lines = [f"{name} {identity}\n" for name, identity in sorted(identities.items())]
            write_atomically(LOCK, "".join((_LOCK_HEAD, *lines)).encode())
    return read_manifest(prepared.manifest.folder / "split.toml"), prepared.audit


def prepare_split(
    draft: Draft,
    source: Source,
    out: Path,
    own_folders: tuple[Path, ...] = (),
    keep_flaws: bool = False,
) -> PreparedSplit:
    """Prepare the split of a draft over its source, checked as in `freeze_draft`. `keep_flaws`: inputs that occur both
    in training and elsewhere, and tokens of a compositional test that are absent from training, are counted and
    declared instead of raising an error."""
    import pyarrow.parquet as pq

    load_rule(draft)
    rows = source.table(own_folders)
    if not source.definition.digest:
        digest = compute_set_digest(
            compute_row_digests(rows.select([f.name for f in source.schema.fields]), source.schema)
        )
        raise BadDefinition(
            f'{source.path} is not pinned yet: below its version, add rows = {rows.num_rows} and digest = "{digest}", '
            "and repeat the command"
        )
    bare = SplitDefinition.model_validate(draft.model_dump(exclude={"data", "benchmark", "identity", "parts"}))
    undeduplicated = bare.model_copy(update={"drop_duplicates": False})
    assigned = assign_rows(
        undeduplicated, rows, source.schema, {pin.name: fetch_file(pin, own_folders) for pin in bare.files}
    )
    before = assigned.num_rows
    if before < rows.num_rows:
        left_out = format_count(rows.num_rows - before, "row")
        log_message(f"{bare.name}: the rule assigns {left_out} of {rows.num_rows:,} to no part")
    if bare.drop_duplicates:
        assigned = drop_shared_inputs(assigned, rows, source.schema)
        log_message(f"{bare.name}: drop_duplicates drops {format_count(before - assigned.num_rows, 'row')} of train")
    pins = {name: PartPin(**pin) for name, pin in compute_part_digests(assigned).items()}
    _refuse_empty(bare, pins)
    if not keep_flaws:
        check_labels(bare, source, rows, assigned)
    pin = bare.source.model_copy(update={"version": source.definition.version, "digest": source.definition.digest})
    frozen = bare.model_copy(update={"parts": pins, "source": pin})
    frozen = frozen.model_copy(update={"identity": frozen.computed_identity()})
    audit_record = audit_split(frozen, rows, assigned, source.schema)
    if keep_flaws and (flaws := find_undeclared(frozen, audit_record)):
        frozen = frozen.model_copy(update={"declared": frozen.declared.model_copy(update=flaws)})
        audit_record["holds"], audit_record["why"] = judge_split(frozen, audit_record)
        log_message(f"{frozen.name} keeps the flaws of the published data: {flaws}")
    if not audit_record["holds"]:
        shared = check_duplicates(frozen, audit_record)
        what = "shares inputs between parts" if shared else "does not have the shift that it declares"
        reasons = "; ".join([str(audit_record["why"]), *_list_remedies(frozen, audit_record)])
        raise BadData(f"{frozen.name}@{frozen.version} {what}: {reasons}")
    folder = out / frozen.name / f"v{frozen.version}"
    _refuse_change(folder, frozen)
    content = tomli_w.dumps(
        frozen.model_dump(exclude_none=True, exclude_defaults=True) | {"format": 1}, multiline_strings=True
    )
    files = []
    if frozen.ships_rows:
        sink = io.BytesIO()
        pq.write_table(assigned.sort_by("row_id"), sink, compression="zstd")
        files.append((folder / "rows.parquet", sink.getvalue()))
    files += [(folder / "audit.json", _format_audit(audit_record)), (folder / "split.toml", content.encode())]
    return PreparedSplit(Manifest(frozen, folder), source, rows, assigned, audit_record, tuple(files))


def _list_remedies(frozen: SplitDefinition, audit_record: dict[str, Any]) -> list[str]:
    """What to change in a draft: the line that declares the flaws of its split, or its parameters."""
    declared, remainder = find_remedy(frozen, audit_record)
    if not declared:
        return list(filter(None, [suggest_change(frozen, audit_record)]))
    line = f"if this is intended, add to the draft: declared = {write_inline(declared)}"
    if "duplicates" in declared:
        line = f"add to the draft: drop_duplicates = true, which drops those rows from training; {line}"
    return [line, f"even then: {remainder}"] if remainder else [line]


def _refuse_empty(definition: SplitDefinition, pins: dict[str, PartPin]) -> None:
    tests = [name for name in pins if name.endswith("_test")] or ["a test part"]
    for name in ("train", *(tests if definition.kind == "corrupted-label" else ["ood_test"])):
        if name not in pins:
            raise BadDefinition(
                f"{definition.name}: the rule assigns no row to {name} (parts: {', '.join(pins) or 'none'}): change "
                "its `parameters`"
            )
    for name, count in (definition.published.rows if definition.published else {}).items():
        if (got := pins[name].weighted_rows if name in pins else 0) != count:
            raise BadDefinition(
                f"{definition.name}: part {name} has {got} rows (including copies), but {count} were published"
            )


def _refuse_change(folder: Path, frozen: SplitDefinition) -> None:
    full_name = f"{frozen.name}@{frozen.version}"
    for known in find_manifests(frozen.name):
        if known.frozen and known.full_name == full_name and known.folder.resolve() != folder.resolve():
            raise BadDefinition(f"{full_name} is published already, in {known.folder}: choose another name")
    published = locked_identities().get(f"{frozen.name}@{frozen.version}")
    path = folder / "split.toml"
    if path.exists() and (old := read_manifest(path)).frozen:
        published = published or old.identity
    if published and published != frozen.identity:
        ours = full_name in locked_identities()
        newest = max((known.definition.version for known in find_manifests(frozen.name)), default=frozen.version)
        raise FarshiftError(
            f"{full_name} is {'published' if ours else 'frozen'} with other rows, and a version never changes: "
            f"set `version` to {max(newest, frozen.version) + 1}" + ("" if ours else f", or delete {folder}")
        )


def write_audit(folder: Path, audit_record: dict[str, Any]) -> None:
    """Write an audit beside its `split.toml`."""
    write_atomically(folder / "audit.json", _format_audit(audit_record))


def _format_audit(audit_record: dict[str, Any]) -> bytes:
    return (json.dumps(audit_record, indent=1, ensure_ascii=False) + "\n").encode()
