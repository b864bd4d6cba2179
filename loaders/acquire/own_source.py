"""A source of the user's own data: a draft's `[data]` table, pinned in `loaders/sources/<name>.toml`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...core.errors import BadData, BadDefinition, Unavailable, replace_error_message
from ...core.files import compute_file_sha256, get_cache_root, get_lock_path, hold_lock, translate_os_errors
from ...core.progress import log_message
from ...splits.pins import FilePin, TreePin
from ..cache.store import map_table, move_into_cache
from ..files.patterns import expand_numbers, find_files, has_parts, is_pattern
from ..files.reader_errors import convert_reader_errors
from .archive_files import ArchiveFiles, FolderFiles, is_archive
from .class_labels import check_class_labels, read_class_labels
from .fetch import fetch_file
from .hub_files import list_hub_pins
from .labels import describe_fields
from .own_data import Data, Plan, plan_folder, plan_table
from .own_parquet import plan_parquet
from .source import Distribution, FieldPin, Source, SourceDefinition, load_sources
from .source_file import PinnedSource, SplitName, choose_file, find_pinned
from .trees import list_tree_hashes


def lock_source(name: str, home: Path) -> AbstractContextManager[None]:
    """Lock a source's file against other processes."""
    path = _make_source_path(name, home)
    return hold_lock(get_lock_path(path), str(path))


def _make_source_path(name: str, home: Path) -> Path:
    return home / "loaders" / "sources" / f"{name}.toml"


def prepare_source(
    data: Data, name: str, beside: Path, home: Path, engine: str = "local", split: SplitName | None = None
) -> PinnedSource:
    """Build the source of a draft's data into the cache, pinned by the rows that the files have now. Its file is not
    written. `split`: the split that it is for."""
    if not re.fullmatch("[a-z0-9_]+", name):
        raise BadDefinition(
            f"[data] the source's name {name!r}: use lower-case letters, digits and _ (source = {{ name = .. }})"
        )
    draft_files = _find_draft_files(data, beside)
    with convert_reader_errors("[data]"):
        plan = _plan_rows(data, draft_files)
    path = _make_source_path(name, home)
    if name in (known := load_sources()) and known[name].path.resolve() != path.resolve():
        raise BadDefinition(
            f"a source named {name!r} exists already ({known[name].path}): choose another name by "
            "source = { name = .. }"
        )
    draft = SourceDefinition(
        name=name,
        version=1,
        title=data.title or (f"{data.hub} (Hugging Face Hub)" if data.hub else "Files of one's own"),
        licence=data.licence,
        citation=data.citation,
        homepage=f"https://huggingface.co/datasets/{data.hub}" if data.hub else "",
        categories=data.categories,
        class_names=_find_class_names(data, plan, draft_files.files),
        fields=[FieldPin(**record) for record in plan.schema.records()],
        distributions=[
            Distribution(
                name=data.hub or "files",
                reader=plan.reader,
                options=plan.options,
                files=draft_files.pins,
                trees=draft_files.trees,
            )
        ],
    )
    pinned = find_pinned(draft, path.parent, split) or _build_source(draft, path, engine, draft_files.folders, split)
    rows = pinned.source.table(draft_files.folders, engine)
    names = plan.options.get("maps", {}) | draft.class_names
    log_message(f"[data] {describe_fields(plan.schema.fields, names, rows, dict(plan.no_classes))}")
    return replace(pinned, folders=draft_files.folders)


def _find_class_names(data: Data, plan: Plan, files: Mapping[str, Path | ArchiveFiles]) -> dict[str, list[str]]:
    """The names that the data give to classes of integer labels."""
    derived_fields = {field for name in ("maps", "above", "at_least") for field in plan.options.get(name, {})}
    columns = {
        field.name: column
        for field in plan.schema.of_role("label")
        if field.type == "int64"
        and field.name not in derived_fields
        and isinstance(column := data.columns()[field.name][0], str)
    }
    return read_class_labels({name: path for name, path in files.items() if isinstance(path, Path)}, columns)


@dataclass(frozen=True)
class _DraftFiles:
    """The data that a draft names: their pins, paths and folders; and, for images and audio, the rest of the pattern
    below the folder or archive."""

    pins: list[FilePin]
    files: dict[str, Path | ArchiveFiles]
    folders: tuple[Path, ...] = ()
    trees: list[TreePin] = field(default_factory=list)
    pattern: str = ""


def _find_draft_files(data: Data, beside: Path) -> _DraftFiles:
    if data.folder:
        return _find_pattern_files(data.folder, beside)
    pins, folders = (
        (list_hub_pins(data.hub, data.revision, data.files), ()) if data.hub else _pin_local_files(data, beside)
    )
    return _DraftFiles(pins, {pin.name: fetch_file(pin, folders) for pin in pins}, folders)


def _find_pattern_files(pattern: str, beside: Path) -> _DraftFiles:
    """The folder or the archives with which a pattern begins."""
    steps = pattern.split("/")
    base, count = beside, 0
    while count < len(steps) and not has_parts(steps[count]) and (base / steps[count]).is_dir():
        base /= steps[count]
        count += 1
    step, rest = "/".join(steps[count : count + 1]), "/".join(steps[count + 1 :])
    if step and not has_parts(step) and (archives := _list_archives(step, base)):
        pins = _pin_files(archives)
        return _DraftFiles(pins, {pin.name: fetch_file(pin, (base,)) for pin in pins}, (base,), [], rest)
    if not count or (step and not has_parts(step) and not is_pattern(step)):
        raise Unavailable(f"[data] no folder or archive {base / step}")
    folder_files = FolderFiles(base).visible()
    hashes, files, _ = list_tree_hashes(folder_files)
    tree = TreePin(name=base.resolve().name, tree=hashes[0], files=files)
    return _DraftFiles([], {tree.name: folder_files}, (base,), [tree], "/".join(steps[count:]))


def _list_archives(step: str, folder: Path) -> list[Path]:
    """The files that a step of a pattern of images or audio names; only archives for a wildcard."""
    if not is_pattern(step) or (folder / step).is_file():
        return [folder / step] if (folder / step).is_file() else []
    try:
        return [path for path in find_files(step, folder) if is_archive(path)]
    except Unavailable as error:
        if any(is_archive(Path(name)) for name in expand_numbers(step)):
            raise Unavailable(f"[data] {error}") from error
        return []


def _plan_rows(data: Data, draft_files: _DraftFiles) -> Plan:
    """Plan how the rows are read. Parquet files keep their types; for other tables and for parts of paths, types are
    inferred from the texts."""
    if data.folder:
        return plan_folder(data, draft_files.files, draft_files.pattern)
    files = {name: path for name, path in draft_files.files.items() if isinstance(path, Path)}
    if data.options or data.types or not all(pin.name.endswith(".parquet") for pin in draft_files.pins):
        return plan_table(data, files)
    return plan_parquet(data, files)


def _build_source(
    draft: SourceDefinition, path: Path, engine: str, folders: tuple[Path, ...], split: SplitName | None
) -> PinnedSource:
    """Build the source into the cache under its digest, once it is known which file pins it."""
    temporary_path = get_cache_root() / "sources" / f".{draft.name}-own.arrow.{os.getpid()}.tmp"
    with translate_os_errors(temporary_path):
        temporary_path.parent.mkdir(parents=True, exist_ok=True)
        try:
            rows, digest = Source(draft, path).write(temporary_path, folders, engine)
            if not rows:
                files = ", ".join(pin.name for pin in draft.distributions[0].files)
                raise BadData(f"[data] {files} has no rows: a source needs at least one")
            check_class_labels(map_table(temporary_path), draft.class_names)
            pinned = choose_file(draft.model_copy(update={"rows": rows, "digest": digest}), path.parent, split)
            move_into_cache(temporary_path, pinned.source.cached_at)
        finally:
            temporary_path.unlink(missing_ok=True)
    return pinned


def _pin_local_files(data: Data, beside: Path) -> tuple[list[FilePin], tuple[Path, ...]]:
    """Local files; a relative pattern is relative to the draft's folder."""
    try:
        paths = {path for pattern in data.files for path in find_files(pattern, beside)}
    except (BadDefinition, Unavailable) as error:
        raise replace_error_message(type(error), f"[data] {error}") from error
    names = [path.name for path in paths]
    if twice := sorted(name for name in set(names) if names.count(name) > 1):
        raise BadDefinition(
            f"[data] two files have the same name, {twice[0]}: rename one, since files are identified by name"
        )
    return _pin_files(paths), tuple(sorted({path.parent for path in paths}))


def _pin_files(paths: Iterable[Path]) -> list[FilePin]:
    return [
        FilePin(name=path.name, sha256=compute_file_sha256(path), bytes=path.stat().st_size)
        for path in sorted(paths, key=lambda path: path.name)
    ]
