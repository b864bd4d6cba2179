"""A source of the user's own data: a draft's `[data]` table, pinned in `loaders/sources/<name>.toml`.

The file is written by the caller, after all else was checked. A build replaces a file that it wrote before, as long as
nobody edited it and no frozen split depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.documents import parse_json
from ...core.errors import BadData, BadDefinition, Unavailable, replace_error_message, shorten_list
from ...core.files import compute_file_sha256, get_lock_path, hold_lock
from ...core.progress import log_message, mute_messages
from ...core.text import format_count
from ...splits.catalogue import list_own_manifests
from ...splits.manifest import FilePin, TreePin, UnpinnedFile
from ..cache.store import map_table, move_into_cache, stage_source
from ..files.patterns import choose_paths, expand_numbers, find_files, has_parts, is_hidden, is_pattern
from ..files.reader_errors import convert_reader_errors
from ..mirrors.hub import find_commit, list_data_set
from ..readers._table_files import open_parquet
from ..readers.listed_files import find_common_folder
from .archive_files import ArchiveFiles, FolderFiles, is_archive
from .fetch import fetch_file, fetch_unpinned_file
from .labels import describe_fields
from .own_data import Data, Plan, count_rows, plan_folder, plan_listed, plan_table
from .source import Distribution, FieldPin, Source, SourceDefinition, load_sources, read_source
from .trees import list_tree_hashes

if TYPE_CHECKING:
    import pyarrow as pa

_MARK = re.compile(rb"# Written by `[^`]*`, which replaces it unless it was edited; sha256 ([0-9a-f]{64})\n")
"""The first line of a file that a build writes into the user's folders; it has the digest of the rest."""


@dataclass(frozen=True)
class PinnedSource:
    """A source whose rows are pinned and cached. `content` is to be written to its path, or None if the existing file
    is equivalent. `folders`: where its files were found."""

    source: Source
    content: bytes | None = None
    folders: tuple[Path, ...] = ()


def lock_source(name: str, home: Path) -> AbstractContextManager[None]:
    """Lock a source's file against other processes."""
    path = _make_source_path(name, home)
    return hold_lock(get_lock_path(path), str(path))


def _make_source_path(name: str, home: Path) -> Path:
    return home / "loaders" / "sources" / f"{name}.toml"


def prepare_source(data: Data, name: str, beside: Path, home: Path) -> PinnedSource:
    """Build the source of a draft's data into the cache, pinned by the rows that the files have now. Its file is not
    written."""
    if not re.fullmatch("[a-z0-9_]+", name):
        raise BadDefinition(
            f"[data] the source's name {name!r}: use lower-case letters, digits and _ (source = {{ name = .. }})"
        )
    data_files = _find_data_files(data, beside)
    tables = data_files.tables
    with convert_reader_errors("[data]"):
        if data.folder and data.files:
            plan = plan_listed(data, tables, data_files.pattern)
        elif data.folder:
            plan = plan_folder(data, data_files.files, data_files.pattern)
        else:
            plan = plan_table(data, tables)
    path = _make_source_path(name, home)
    if name in (known := load_sources()) and known[name].path.resolve() != path.resolve():
        raise BadDefinition(
            f"a source named {name!r} exists already ({known[name].path}): choose another name by "
            "source = { name = .. }"
        )
    distribution = Distribution(
        name=data.hub or "files",
        reader=plan.reader,
        options=plan.options,
        files=data_files.pins,
        trees=data_files.trees,
    )
    draft = SourceDefinition(
        name=name,
        version=1,
        title=data.title or (f"{data.hub} (Hugging Face Hub)" if data.hub else "Files of one's own"),
        licence=data.licence,
        citation=data.citation,
        homepage=f"https://huggingface.co/datasets/{data.hub}" if data.hub else "",
        categories=data.categories,
        class_names=_read_class_labels(data, plan, tables),
        fields=[FieldPin(**record) for record in plan.schema.records()],
        distributions=[distribution],
    )
    folders = data_files.folders
    known_source = read_source(path) if path.exists() else None
    unpinned = {"rows": 0, "digest": "", "class_names": draft.class_names}
    if known_source is not None and known_source.definition.model_copy(update=unpinned) == draft:
        pinned = PinnedSource(known_source)  # built from the same data in the same way
    else:
        pinned = _build_source(draft, path, folders)
    rows = pinned.source.table(folders)
    if plan.reader == "table" and "sample" not in data.options:
        _report_dropped(data, plan, tables, rows.num_rows)
    names = plan.options.get("maps", {}) | draft.class_names
    log_message(f"[data] {describe_fields(plan.schema.fields, names, rows, dict(plan.no_classes))}")
    return replace(pinned, folders=folders)


def _report_dropped(data: Data, plan: Plan, tables: Mapping[str, Path], rows: int) -> None:
    """Log how many rows `if_missing` dropped."""
    rule = data.options.get("if_missing")
    if rule == "drop" or (isinstance(rule, dict) and "drop" in rule.values()):
        dropped = count_rows(tables, data.options, plan.options["columns"]) - rows
        log_message(f"[data] if_missing drops {format_count(dropped, 'row')} of {dropped + rows:,}")


def _build_source(draft: SourceDefinition, path: Path, folders: tuple[Path, ...]) -> PinnedSource:
    """Build the source into the cache under its digest, unless its file may not be replaced."""
    with stage_source(f"{draft.name}-own") as temporary_path:
        rows, digest, _ = Source(draft, path).write(temporary_path, folders)
        if not rows:
            files = ", ".join(pin.name for pin in draft.distributions[0].files)
            raise BadData(f"[data] {files} has no rows: a source needs at least one")
        _check_class_labels(map_table(temporary_path), draft.class_names)
        pinned = _pin_source(draft.model_copy(update={"rows": rows, "digest": digest}), path)
        move_into_cache(temporary_path, pinned.source.cached_at)
        return pinned


def _pin_source(definition: SourceDefinition, path: Path) -> PinnedSource:
    """Return the pinned source with its file's new content, or as it is if an edited file gives the same rows. Raises
    `BadDefinition` if a frozen split depends on the file, or somebody edited it."""
    import tomli_w

    if path.exists():
        known = read_source(path)
        same = _list_facts(known.definition) == _list_facts(definition)
        pin = (known.name, known.definition.digest)
        own = [each for each in list_own_manifests() if each.frozen and not same]
        if standing := [each for each in own if (each.definition.source.name, each.definition.source.digest) == pin]:
            names, folders = [each.full_name for each in standing], [str(each.folder) for each in standing]
            raise BadDefinition(
                f"{path} pins other data, and a split stands on them that is frozen ({shorten_list(names)}): name the "
                f"new source by source = {{ name = .. }} and increase `version`, or delete {shorten_list(folders)}"
            )
        if not is_unedited(path):
            if not same:
                raise BadDefinition(
                    f"{path} defines {definition.name!r} by other data, and was written or edited by hand: delete it, "
                    "or rename this source by source = { name = .. }"
                )
            log_message(f"{path} was written or edited by hand, and gives the same rows: it is not changed")
            return PinnedSource(known)
        log_message(f"{path} {'pins the same rows of other files' if same else 'pinned other data'}: it is rewritten")
    content = tomli_w.dumps(definition.model_dump(exclude_defaults=True)).encode()
    return PinnedSource(Source(definition, path), mark_generated(content))


def _list_facts(definition: SourceDefinition) -> list[object]:
    """What splits over a source depend on: rows, fields and class names."""
    maps = [distribution.options.get("maps") for distribution in definition.distributions]
    return [definition.version, definition.digest, definition.fields, definition.class_names, maps]


def mark_generated(content: bytes) -> bytes:
    """Prepend to a TOML file's content the line that says that a build wrote it."""
    digest = sha256(content).hexdigest()
    mark = f"# Written by `farshift splits build`, which replaces it unless it was edited; sha256 {digest}\n"
    return mark.encode() + content


def strip_mark(content: bytes) -> bytes:
    """Return the content without the line of `mark_generated`, if it has one."""
    return content[match.end() :] if (match := _MARK.match(content)) else content


def is_unedited(path: Path) -> bool:
    """Whether a build wrote a file, and it has not been changed since."""
    content = path.read_bytes()
    match = _MARK.match(content)
    return match is not None and sha256(content[match.end() :]).hexdigest() == match[1].decode()


# The files that a draft names.


@dataclass(frozen=True)
class _DataFiles:
    """The data that a draft names: their pins, paths and folders; for files in folders, the rest of the pattern below
    the folder or archive; for files that tables name, the tables, and what the folder or archive is called."""

    pins: list[FilePin]
    files: dict[str, Path | ArchiveFiles]
    folders: tuple[Path, ...] = ()
    trees: list[TreePin] = field(default_factory=list)
    pattern: str = ""
    tables: dict[str, Path] = field(default_factory=dict)


def _find_data_files(data: Data, beside: Path) -> _DataFiles:
    if data.folder and not data.files:
        return _find_pattern_files(data.folder, beside)
    folders: tuple[Path, ...] = ()
    if data.hub:
        pins = list_hub_pins(data.hub, data.revision, data.files)
    else:
        pins, folders = _pin_local_files(data, beside)
    tables = {pin.name: fetch_file(pin, folders) for pin in pins}
    if not data.folder:
        return _DataFiles(pins, dict(tables), folders, tables=tables)
    with mute_messages(), convert_reader_errors("[data]"):
        common = f"{find_common_folder(tables, tables, data.folder, **data.options)}/{{file}}"
    listed = _find_pattern_files(common, beside)
    if len(listed.files) > 1 or listed.files.keys() & tables.keys():
        raise BadDefinition(f"[data] {common}: name one folder or archive, which has another name than the tables")
    return _DataFiles(
        [*pins, *listed.pins],
        {**tables, **listed.files},
        (*folders, *listed.folders),
        listed.trees,
        common.removesuffix(f"/{listed.pattern}"),
        tables,
    )


def _find_pattern_files(pattern: str, beside: Path) -> _DataFiles:
    """The folder or the archives with which a pattern begins."""
    steps = pattern.split("/")
    base, count = beside, 0
    while count < len(steps) and not has_parts(steps[count]) and (base / steps[count]).is_dir():
        base /= steps[count]
        count += 1
    step, rest = "/".join(steps[count : count + 1]), "/".join(steps[count + 1 :])
    if step and not has_parts(step) and (archives := _list_archives(step, base)):
        pins = _pin_files(archives)
        return _DataFiles(pins, {pin.name: fetch_file(pin, (base,)) for pin in pins}, (base,), [], rest)
    if not count or (step and not has_parts(step) and not is_pattern(step)):
        raise Unavailable(f"[data] no folder or archive {base / step}")
    folder_files = FolderFiles(base).visible()
    hashes, files, _ = list_tree_hashes(folder_files)
    tree = TreePin(name=base.resolve().name, tree=hashes[0], files=files)
    return _DataFiles([], {tree.name: folder_files}, (base,), [tree], "/".join(steps[count:]))


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


def _pin_local_files(data: Data, beside: Path) -> tuple[list[FilePin], tuple[Path, ...]]:
    """Local files; a relative pattern is relative to the draft's folder."""
    try:
        paths = {path for pattern in data.files for path in find_files(pattern, beside)}
    except (BadDefinition, Unavailable) as error:
        raise replace_error_message(type(error), f"[data] {error}") from error
    # SQLite keeps the last rows in a log beside the file while a program writes to it.
    logs = (Path(f"{path}{ending}") for path in sorted(paths) for ending in ("-wal", "-journal"))
    if log := next((log for log in logs if log.is_file() and log.stat().st_size), None):
        raise BadDefinition(
            f"[data] changes of a database are still in {log.name}, which is not read: close what writes to it, then "
            f"run sqlite3 {log.name.rpartition('-')[0]} 'PRAGMA wal_checkpoint(TRUNCATE)'"
        )
    names = [path.name for path in paths]
    if twice := sorted(name for name in set(names) if names.count(name) > 1):
        raise BadDefinition(
            f"[data] two files have the same name, {twice[0]}: rename one, since files are identified by name; "
            'texts in folders are read by texts = "FOLDER/{topic}/{file}" instead of `files`'
        )
    return _pin_files(paths), tuple(sorted({path.parent for path in paths}))


def _pin_files(paths: Iterable[Path]) -> list[FilePin]:
    return [
        FilePin(name=path.name, sha256=compute_file_sha256(path), bytes=path.stat().st_size)
        for path in sorted(paths, key=lambda path: path.name)
    ]


def list_hub_pins(repo: str, revision: str, patterns: Sequence[str]) -> list[FilePin]:
    """Return the files of data set `repo` that match one of the patterns, at the commit that `revision` (a branch, tag
    or commit) currently names. Raises `BadDefinition` if there is none, `Unavailable` if the Hub cannot be reached."""
    commit = find_commit(repo, revision)
    files = list_data_set(repo, commit)
    absent: list[str] = []
    chosen = choose_paths([path for path in files if path in patterns or not is_hidden(path)], patterns, absent)
    if absent:
        raise BadDefinition(f"Hub {repo}@{commit[:12]} has no file {shorten_list(absent)}")
    pins = []
    for path in sorted(chosen):
        size, mirrors = files[path].size, [{"sort": "hub", "repo": repo, "revision": commit, "file": path}]
        if (stored := files[path].lfs) is not None:
            pins.append(FilePin(name=path, sha256=stored.sha256, bytes=size, mirrors=mirrors))
        else:  # the Hub publishes no sha256 for small files
            pins.append(fetch_unpinned_file(UnpinnedFile(name=path, bytes=size, mirrors=mirrors))[0])
    return pins


# The class names of `ClassLabel` features of Hugging Face data sets.


def _read_class_labels(data: Data, plan: Plan, files: Mapping[str, Path]) -> dict[str, list[str]]:
    """The names of the classes 0, 1 .. of integer labels, from the `huggingface` metadata of Parquet files. Raises
    `BadDefinition` if two files disagree."""
    derived = {name for option in ("maps", "above", "at_least") for name in plan.options.get(option, {})}
    labels = [label.name for label in plan.schema.of_role("label") if label.type == "int64"]
    columns = {name: data.columns()[name][0] for name in labels if name not in derived}
    class_names: dict[str, list[str]] = {}
    for file_name, path in sorted(files.items()):
        if not file_name.endswith(".parquet"):
            continue
        with open_parquet(path, file_name) as file:
            metadata = file.schema_arrow.metadata or {}
        for name, column in columns.items():
            feature = _read_feature(metadata, column) if isinstance(column, str) else {}
            names = feature.get("names") if feature.get("_type") == "ClassLabel" else None
            if not isinstance(names, list) or not all(isinstance(text, str) and text for text in names):
                continue
            if class_names.setdefault(name, names) != names:
                raise BadDefinition(
                    f"[data] {file_name} and {min(files)} have different names for the classes of {column!r}: a class "
                    "number would have two meanings"
                )
    return {name: names for name, names in class_names.items() if len(set(names)) == len(names)}


def _read_feature(metadata: Mapping[bytes, bytes], column: str) -> dict[str, Any]:
    """The feature of a column, or of a structure's field ("answer.kind"), by a Parquet file's metadata; empty if they
    do not tell."""
    try:
        feature = parse_json(metadata[b"huggingface"])["info"]["features"]
        for step in [column] if column in feature else column.split("."):
            feature = feature[step]
    except (ValueError, LookupError, TypeError):
        return {}
    return feature if isinstance(feature, dict) else {}


def _check_class_labels(rows: pa.Table, class_names: Mapping[str, Sequence[str]]) -> None:
    """Raise `BadData` if a class has no name. Hub data sets have -1 for an unknown label."""
    import pyarrow.compute as pc

    for name, names in class_names.items():
        last = len(names) - 1
        for value in pc.min_max(rows[name]).as_py().values():
            if value is not None and not 0 <= value <= last:
                raise BadData(
                    f"[data] {name} has the class {value}, but its ClassLabel names only 0 to {last}: exclude "
                    f"these rows by options = {{ without = {{ COLUMN = {value} }} }}"
                )
