"""Files in folders whose paths say what they are: the common part of pictures and sounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ...core.errors import BadData, BadDefinition, shorten_list
from ..acquire.archive_files import ArchiveFiles, open_archive
from ..files.patterns import PathPattern, choose_paths, escape_literal_folders
from ._file_rows import iterate_file_tables
from ._option_errors import describe_option

if TYPE_CHECKING:
    import pyarrow as pa

Value = bool | int | float | str
Parts = dict[str, str]

_Damaged = tuple[str, str, str]
"""A file that is damaged: its folder or archive, its path there, and what is wrong with it."""

_SHOWN = 5
"""How many files a message says something of."""


class FolderOptions(BaseModel):
    """The options of the readers of folders; `image_folder` says what each means."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    pattern: str
    folder: str = ""
    fields: dict[str, str] = {}
    maps: dict[str, dict[str, Value] | list[str | list[str]] | Literal["sorted"]] = {}
    constants: dict[str, Value] = {}
    path: str = ""
    suffixes: list[str] = []
    ignore: list[str] = []
    accept: list[str] = []
    where: dict[str, str | list[str]] = {}
    without: dict[str, str | list[str]] = {}
    each: dict[str, dict[str, Any]] = {}

    @cached_property
    def paths(self) -> PathPattern:
        return PathPattern(self.pattern)

    def of_file(self, name: str) -> FolderOptions:
        """The options of one archive or tree: those of `each` whose name or pattern fits it come first."""
        changes: dict[str, Any] = {}
        for pattern, options in self.each.items():
            if choose_paths([name], [pattern]):
                changes |= options
        base_options = self.model_dump(exclude_defaults=True, exclude={"each"})
        constants = {**self.constants, **changes.get("constants", {})}
        return parse_options(base_options | changes | {"constants": constants}) if changes else self

    def includes(self, parts: Parts) -> bool:
        """Whether `where` and `without` let a file stay."""
        for rule, stays in ((self.where, True), (self.without, False)):
            for part, values in rule.items():
                if part not in parts:
                    raise BadDefinition(f"the pattern {self.pattern!r} has no part {{{part}}}")
                if (parts[part] in ([values] if isinstance(values, str) else values)) is not stays:
                    return False
        return True


def parse_options(options: Mapping[str, Any]) -> FolderOptions:
    """The options; `BadDefinition` says which is none, or what is wrong with it."""
    try:
        return FolderOptions(**options)
    except ValidationError as error:
        raise BadDefinition(describe_option(error, FolderOptions, "a folder of files")) from error


def read_folder_tables(
    files: Mapping[str, Path | ArchiveFiles],
    options: FolderOptions,
    field: str,
    suffixes: Sequence[str],
    problem: Callable[[bytes], str],
) -> Iterator[pa.Table]:
    """A row for each file that fits the pattern, in tables of bounded size: its bytes as `field`, and its fields.
    `problem` says what is wrong with a file's bytes."""
    wrong: list[_Damaged] = []
    with ExitStack() as stack:
        folders = _open_folders(files, options, suffixes, stack)
        every = [parts for _, _, parts_by_path in folders for parts in parts_by_path.values()]
        for archive, own, parts_by_path in folders:
            yield from iterate_file_tables(
                _iterate_rows(
                    archive, own, field, parts_by_path, _Fields(archive, own, parts_by_path, every), problem, wrong
                )
            )
    if wrong:
        raise BadData(_describe_damaged(wrong, len(every)))


def list_folder_parts(
    files: Mapping[str, Path | ArchiveFiles], options: FolderOptions, suffixes: Sequence[str]
) -> list[Parts]:
    """The parts of each file's path, of all files that would be read."""
    with ExitStack() as stack:
        return [
            parts
            for _, _, parts_by_path in _open_folders(files, options, suffixes, stack)
            for parts in parts_by_path.values()
        ]


def _open_folders(
    files: Mapping[str, Path | ArchiveFiles], options: FolderOptions, suffixes: Sequence[str], stack: ExitStack
) -> list[tuple[ArchiveFiles, FolderOptions, dict[str, Parts]]]:
    """Each archive or folder with its options and the files that are read."""
    folders = []
    for name, where in files.items():
        own = options.of_file(name)
        archive = (stack.enter_context(open_archive(where, name)) if isinstance(where, Path) else where).subdir(
            own.folder
        )
        archive.announce_hidden()
        archive = archive.visible()
        folders.append((archive, own, _select_files(archive, own, own.suffixes or suffixes)))
    return folders


def _iterate_rows(
    archive: ArchiveFiles,
    options: FolderOptions,
    field: str,
    parts_by_path: Mapping[str, Parts],
    fields: _Fields,
    problem: Callable[[bytes], str],
    wrong: list[_Damaged],
) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    """The field, bytes and fields of each file; those with a problem go to `wrong`, and after one nothing is given."""
    for path, content in archive.walk(parts_by_path.__contains__):
        if (reason := problem(content)) and not choose_paths([path], options.accept):
            wrong.append((archive.where, path, reason))
        if not wrong:
            yield field, content, fields.of(path)


def _describe_damaged(wrong: Sequence[_Damaged], count: int) -> str:
    """What is wrong with files, and the options that leave them out or keep them."""
    places = {where for where, _, _ in wrong}
    head = f"{', '.join(sorted(places))}: "
    if len(wrong) > 1:
        head += f"{len(wrong):,} of {count:,} files are damaged, and so the first: "
    each = [f"{path if len(places) == 1 else f'{where}: {path}'} {reason}" for where, path, reason in wrong[:_SHOWN]]
    out = format_ignore_option([path for _, path, _ in wrong])
    return (
        f"{head}{'; '.join(each)}: put right what is damaged, leave it out by {out}, or keep it as it is by `accept` "
        "instead"
    )


def format_ignore_option(paths: Sequence[str]) -> str:
    """The option that leaves these files out, as it is written in a draft; of many, the first."""
    shown = ", ".join(json.dumps(path, ensure_ascii=False) for path in paths[:_SHOWN])
    return f"options = {{ ignore = [{shown}{', ..' if len(paths) > _SHOWN else ''}] }}"


def _select_files(archive: ArchiveFiles, options: FolderOptions, suffixes: Sequence[str]) -> dict[str, Parts]:
    """The files that are read, with their parts; `BadData` names those that are neither read nor to be ignored."""
    endings = {f".{suffix.lower().removeprefix('.')}" for suffix in suffixes}
    parts_by_path, others = {}, []
    ignored = choose_paths(archive.names(), options.ignore)
    paths = PathPattern(escape_literal_folders(options.pattern, archive.names()))
    for path in archive.names():
        if path in ignored:
            continue
        parts = paths.fits(path) if PurePosixPath(path).suffix.lower() in endings else None
        if parts is None:
            others.append(path)
        else:
            parts_by_path[path] = parts
    if others:
        raise BadData(
            f"{archive.where}: {len(others):,} of {len(others) + len(parts_by_path):,} files do not fit "
            f"{options.pattern!r} with "
            f"the suffix {' or '.join(sorted(endings))}: {shorten_list(others)}; leave them out by "
            f"{format_ignore_option(others)}"
        )
    _refuse_case_clashes(archive, options, parts_by_path)
    selected_files = {path: parts for path, parts in parts_by_path.items() if options.includes(parts)}
    if not selected_files:
        rest = "" if not parts_by_path else ", and that `where` and `without` of `options` let stay"
        raise BadData(
            f"{archive.where} has no file that fits {options.pattern!r} with the suffix {' or '.join(sorted(endings))} "
            f"(options = {{ suffixes = [..] }}){rest}"
        )
    return selected_files


def _refuse_case_clashes(archive: ArchiveFiles, options: FolderOptions, parts_by_path: Mapping[str, Parts]) -> None:
    """Two folders that differ by case only are one where the file system makes no difference."""
    mapped_parts = {part for field, part in _map_fields_to_parts(options).items() if field in options.maps}
    for part in options.paths.parts:
        if part in mapped_parts or f"/{{{part}}}/" not in f"/{options.pattern}":
            continue
        first: dict[str, str] = {}
        for parts in parts_by_path.values():
            if (other := first.setdefault(parts[part].lower(), parts[part])) != parts[part]:
                raise BadData(
                    f"{archive.where}: the {part} {other!r} and the {part} {parts[part]!r} differ by case only: rename "
                    f"one, or say what each is by options = {{ maps = {{ {part} = {{ {other} = .., {parts[part]} = .. "
                    "} } }"
                )


def _map_fields_to_parts(options: FolderOptions) -> dict[str, str]:
    """The part that each field is."""
    return options.fields or {part: part for part in options.paths.parts}


class _Fields:
    """What a file's path says, as fields. `every` has the parts of all files, of other archives too."""

    def __init__(
        self, archive: ArchiveFiles, options: FolderOptions, parts_by_path: Mapping[str, Parts], every: Sequence[Parts]
    ) -> None:
        self._where, self._options, self._parts_by_path, self._named = (
            archive.where,
            options,
            parts_by_path,
            _map_fields_to_parts(options),
        )
        if unknown := sorted(set(self._named.values()) - set(options.paths.parts)):
            raise BadDefinition(f"the pattern {options.pattern!r} has no part {{{unknown[0]}}}")
        if unknown := sorted(set(options.maps) - set(self._named)):
            raise BadDefinition(
                f"maps.{unknown[0]}: there is no such field (there are {shorten_list(list(self._named))})"
            )
        self._maps = {
            field: _map_texts(
                sorted({parts[self._named[field]] for parts in every}) if meaning == "sorted" else meaning
            )
            for field, meaning in options.maps.items()
        }

    def of(self, path: str) -> dict[str, Any]:
        parts, options = self._parts_by_path[path], self._options
        fields: dict[str, Any] = {field: parts[part] for field, part in self._named.items()}
        for field, known in self._maps.items():
            if fields[field] not in known:
                raise BadData(
                    f"{self._where}: {path} has the {self._named[field]} {fields[field]!r}, which is none of "
                    f"{shorten_list(sorted(known))}: add it to `maps`, or leave it out by `without` or `ignore`"
                )
            fields[field] = known[fields[field]]
        fields |= options.constants
        return fields | ({options.path: path} if options.path else {})


def _map_texts(spec: Mapping[str, Value] | Sequence[str | list[str]] | str) -> Mapping[str, Value]:
    """The value of each text: as said, or the place of the text in a list."""
    if isinstance(spec, Mapping):
        return spec
    levels = [[level] if isinstance(level, str) else level for level in spec]
    return {text: index for index, level in enumerate(levels) for text in level}
