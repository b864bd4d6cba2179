"""Images in folders, zip or tar archives, with fields taken from their paths.

[distributions.options]
pattern = "{domain}/{category}/{file}"
fields = { domain = "domain", label = "category" }
maps = { label = ["dog", "elephant", "giraffe"] }
ignore = ["README.txt"]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from ...core.errors import BadData, BadDefinition, shorten_list
from ..acquire.archive_files import ArchiveFiles, open_archive
from ..files.patterns import PathPattern, choose_paths, escape_literal_folders
from ._file_checks import find_image_problem
from ._layout import iterate_file_tables
from ._table_options import parse_options

SUFFIXES = ("jpg", "jpeg", "png", "webp", "gif", "tif", "tiff", "bmp")
Value = bool | int | float | str
Parts = dict[str, str]

_Damaged = tuple[str, str, str]
"""A damaged file: its folder or archive, its path in it, and what is wrong with it."""

_SHOWN = 5
"""How many files a message lists."""


def read(files: Mapping[str, Path | ArchiveFiles], **options: Any) -> pa.Table:
    """Read the rows of all images; see `pieces`."""
    return pa.concat_tables(pieces(files, **options))


def pieces(files: Mapping[str, Path | ArchiveFiles], *, image: str = "image", **options: Any) -> Iterator[pa.Table]:
    """Yield a row for each image, with its bytes in the field `image` and the fields of its path; about 32 MB per
    table.

    `pattern` names the parts of a path, "{domain}/{category}/{file}" (see `files/patterns.py`); `folder` is where it
    begins in the archive. Fields: `fields` (the part of each field; by default each part is a field), `maps` (a field's
    value for each text; a list of texts whose indices are the values; or "sorted", for the indices in the sorted list
    of all texts in the files that are read), `constants` (fields with one value), `path` (the field of the path).
    Which files: those with one of `suffixes` (in any case), except hidden files and those that fit `ignore` (patterns
    of names, paths or folders); `where` and `without` ({ part = text or texts }); `each` (other options for one archive
    of several, by its name or a pattern).

    Raises `BadData` for files that neither fit `pattern` nor `ignore`, and for files that are cut off, damaged or not
    images; files that fit `accept` (patterns as in `ignore`) are not checked.
    """
    yield from read_folder_tables(
        files, parse_options(FolderOptions, "a folder of files", options), image, SUFFIXES, find_image_problem
    )


def parts(files: Mapping[str, Path | ArchiveFiles], **options: Any) -> list[dict[str, str]]:
    """Return the parts of the path of each image that would be read, without reading the images."""
    return list_folder_parts(files, parse_options(FolderOptions, "a folder of files", options), SUFFIXES)


class FolderOptions(BaseModel):
    """Options of the readers of folders; `image_folder.pieces` documents them."""

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
        """Return the options of one archive or tree; those of `each` whose name or pattern fits take precedence."""
        changes: dict[str, Any] = {}
        for pattern, options in self.each.items():
            if choose_paths([name], [pattern]):
                changes |= options
        base_options = self.model_dump(exclude_defaults=True, exclude={"each"})
        constants = {**self.constants, **changes.get("constants", {})}
        return (
            parse_options(FolderOptions, "a folder of files", base_options | changes | {"constants": constants})
            if changes
            else self
        )

    def includes(self, parts: Parts) -> bool:
        """Whether `where` and `without` keep a file."""
        for rule, stays in ((self.where, True), (self.without, False)):
            for part, values in rule.items():
                if part not in parts:
                    raise BadDefinition(f"the pattern {self.pattern!r} has no part {{{part}}}")
                if (parts[part] in ([values] if isinstance(values, str) else values)) is not stays:
                    return False
        return True


def read_folder_tables(
    files: Mapping[str, Path | ArchiveFiles],
    options: FolderOptions,
    field: str,
    suffixes: Sequence[str],
    problem: Callable[[bytes], str],
) -> Iterator[pa.Table]:
    """Yield tables of bounded size with a row for each file that fits the pattern: its bytes as `field`, and the fields
    of its path. `problem` returns what is wrong with a file's bytes, or ""."""
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
    """Return the parts of the path of each file that would be read."""
    with ExitStack() as stack:
        return [
            parts
            for _, _, parts_by_path in _open_folders(files, options, suffixes, stack)
            for parts in parts_by_path.values()
        ]


def _open_folders(
    files: Mapping[str, Path | ArchiveFiles], options: FolderOptions, suffixes: Sequence[str], stack: ExitStack
) -> list[tuple[ArchiveFiles, FolderOptions, dict[str, Parts]]]:
    """Open each archive or folder; return it with its options and the files to read."""
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
    """Yield the field, the bytes and the other fields of each file. Damaged files are added to `wrong`; after the first
    one nothing more is yielded."""
    for path, content in archive.walk(parts_by_path.__contains__):
        if (reason := problem(content)) and not choose_paths([path], options.accept):
            wrong.append((archive.where, path, reason))
        if not wrong:
            yield field, content, fields.of(path)


def _describe_damaged(wrong: Sequence[_Damaged], count: int) -> str:
    """Describe damaged files, and the options that leave them out or keep them."""
    places = {where for where, _, _ in wrong}
    head = f"{', '.join(sorted(places))}: "
    if len(wrong) > 1:
        head += f"{len(wrong):,} of {count:,} files are damaged, beginning with: "
    each = [f"{path if len(places) == 1 else f'{where}: {path}'} {reason}" for where, path, reason in wrong[:_SHOWN]]
    out = format_ignore_option([path for _, path, _ in wrong])
    return (
        f"{head}{'; '.join(each)}: repair the damaged files, leave them out with {out}, or keep them unchanged with "
        "`accept`"
    )


def format_ignore_option(paths: Sequence[str]) -> str:
    """Format the option that leaves files out, with at most the first few of them."""
    shown = ", ".join(json.dumps(path, ensure_ascii=False) for path in paths[:_SHOWN])
    return f"options = {{ ignore = [{shown}{', ..' if len(paths) > _SHOWN else ''}] }}"


def _select_files(archive: ArchiveFiles, options: FolderOptions, suffixes: Sequence[str]) -> dict[str, Parts]:
    """Return the files to read, with the parts of their paths. Raises `BadData` for files that neither fit nor are to
    be ignored."""
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
            f"the suffix {' or '.join(sorted(endings))}: {shorten_list(others)}; leave them out with "
            f"{format_ignore_option(others)}"
        )
    _refuse_case_clashes(archive, options, parts_by_path)
    selected_files = {path: parts for path, parts in parts_by_path.items() if options.includes(parts)}
    if not selected_files:
        rest = "" if not parts_by_path else ", and that `where` and `without` of `options` keep"
        raise BadData(
            f"{archive.where} has no file that fits {options.pattern!r} with the suffix {' or '.join(sorted(endings))} "
            f"(options = {{ suffixes = [..] }}){rest}"
        )
    return selected_files


def _refuse_case_clashes(archive: ArchiveFiles, options: FolderOptions, parts_by_path: Mapping[str, Parts]) -> None:
    """Refuse folders that differ by case only: on a case-insensitive file system they would be one folder."""
    mapped_parts = {part for field, part in _map_fields_to_parts(options).items() if field in options.maps}
    for part in options.paths.parts:
        if part in mapped_parts or f"/{{{part}}}/" not in f"/{options.pattern}":
            continue
        first: dict[str, str] = {}
        for parts in parts_by_path.values():
            if (other := first.setdefault(parts[part].lower(), parts[part])) != parts[part]:
                raise BadData(
                    f"{archive.where}: the {part} {other!r} and the {part} {parts[part]!r} differ by case only: rename "
                    "one, or give each a value with options = "
                    f"{{ maps = {{ {part} = {{ {other} = .., {parts[part]} = .. }} }} }}"
                )


def _map_fields_to_parts(options: FolderOptions) -> dict[str, str]:
    """Return the part of the path that each field is taken from."""
    return options.fields or {part: part for part in options.paths.parts}


class _Fields:
    """The fields of a file's path. `every` has the parts of all files, including those of other archives."""

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
                f"maps.{unknown[0]}: no field has this name (the fields are {shorten_list(list(self._named))})"
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
                    f"{self._where}: {path} has the {self._named[field]} {fields[field]!r}, which is not one of "
                    f"{shorten_list(sorted(known))}: add it to `maps`, or leave the file out with `without` or `ignore`"
                )
            fields[field] = known[fields[field]]
        fields |= options.constants
        return fields | ({options.path: path} if options.path else {})


def _map_texts(spec: Mapping[str, Value] | Sequence[str | list[str]] | str) -> Mapping[str, Value]:
    """Return the value of each text: as given, or its index in a list."""
    if isinstance(spec, Mapping):
        return spec
    levels = [[level] if isinstance(level, str) else level for level in spec]
    return {text: index for index, level in enumerate(levels) for text in level}
