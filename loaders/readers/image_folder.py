"""Images, audio files or texts in folders, zip or tar archives, with fields taken from their paths.

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
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import pyarrow as pa
from pydantic import BaseModel

from ...core.errors import BadData, BadDefinition, shorten_list
from ..acquire.archive_files import ArchiveFiles, open_archive
from ..files.patterns import PathPattern, choose_paths, escape_literal_folders
from ._cells import index_levels
from ._file_checks import find_audio_problem, find_image_problem
from ._layout import iterate_file_tables, read_utf8_lines
from ._table_options import ReaderOptions, Value

Parts = dict[str, str]

_Damaged = tuple[str, str, str]
"""A damaged file: its folder or archive, its path in it, and what is wrong with it."""

_SHOWN = 5
"""How many files a message lists."""


def find_text_problem(content: bytes, encoding: str = "utf-8-sig") -> str:
    """Return why the bytes of a file are not text; "" if they are."""
    try:
        content.decode(encoding)
    except LookupError as error:
        raise BadDefinition(f"unknown encoding {encoding!r}: use utf-8, latin-1, cp1252, utf-16 ..") from error
    except UnicodeDecodeError as error:
        return f'is not {encoding.removesuffix("-sig")} text (byte {error.start}; options = {{ encoding = "latin-1" }})'
    return ""


_CONTENTS: dict[str, tuple[tuple[str, ...], Callable[[bytes], str]]] = {
    "image": (("jpg", "jpeg", "png", "webp", "gif", "tif", "tiff", "bmp"), find_image_problem),
    "audio": (("wav",), find_audio_problem),
    "text": (("txt",), find_text_problem),
}
"""By content: the suffixes of its files, and what returns what is wrong with a file's bytes, or ""."""


def read(files: Mapping[str, Path | ArchiveFiles], *, image: str = "image", **options: Any) -> Iterator[pa.Table]:
    """Yield a row for each image, with its bytes in the field `image` and the fields of its path; about 32 MB per
    table.

    `pattern` names the parts of a path, "{domain}/{category}/{file}" (see `files/patterns.py`); `folder` is where
    it begins in the archive. Fields: `fields` (the part of each field; by default each part is a field), `maps` (a
    field's value for each text; a list of texts whose indices are the values; or "sorted", for the indices in the
    sorted list of all texts in the files that are read), `constants` (fields with one value), `path` (the field of
    the path). Which files: those with one of `suffixes` (in any case), except hidden files, those that fit `ignore`
    (patterns of names, paths or folders) and those whose path is a line of the file `ignore_list`; `where` and
    `without` ({ part = text or texts }); `each` (other options for one archive of several, by its name or a
    pattern).

    Raises `BadData` for files that neither fit `pattern` nor `ignore`, and for files that are cut off, damaged or not
    images; files that fit `accept` (patterns as in `ignore`) are not checked.
    """
    yield from _read_tables(files, FolderOptions.parse(options), image, "image")


def wav(files: Mapping[str, Path | ArchiveFiles], *, audio: str = "audio", **options: Any) -> Iterator[pa.Table]:
    """Yield a row for each audio file, with its bytes in the field `audio`, as `read` does for images. FLAC,
    Ogg and MP3 are read if `suffixes` has them."""
    yield from _read_tables(files, FolderOptions.parse(options), audio, "audio")


def texts(
    files: Mapping[str, Path | ArchiveFiles], *, text: str = "text", encoding: str = "utf-8-sig", **options: Any
) -> Iterator[pa.Table]:
    """Yield a row for each file, with its whole text in the field `text`, as `read` does for images; `suffixes
    = [""]` reads files without a suffix. Raises `BadData` for files that are not text in the encoding."""
    problem = partial(find_text_problem, encoding=encoding)
    for table in _read_tables(files, FolderOptions.parse(options), text, "text", problem):
        texts = [content.decode(encoding, "replace") for content in table[text].to_pylist()]
        yield table.set_column(table.column_names.index(text), text, pa.array(texts, pa.string()))


def list_parts(files: Mapping[str, Path | ArchiveFiles], content: str, **options: Any) -> list[Parts]:
    """Return the parts of the path of each file that would be read, without reading it. content: "image", "audio"
    or "text"."""
    with ExitStack() as stack:
        folders = _open_folders(files, FolderOptions.parse(options), content, stack)
        return [parts for folder in folders for parts in folder.parts.values()]


class FolderOptions(ReaderOptions, BaseModel):
    """Options of the readers of folders; `read` documents them."""

    READER = "a folder of files"

    pattern: str
    folder: str = ""
    fields: dict[str, str] = {}
    maps: dict[str, dict[str, Value] | list[str | list[str]] | Literal["sorted"]] = {}
    path: str = ""
    suffixes: list[str] = []
    ignore: list[str] = []
    ignore_list: str = ""
    accept: list[str] = []
    where: dict[str, str | list[str]] = {}
    without: dict[str, str | list[str]] = {}

    @cached_property
    def paths(self) -> PathPattern:
        return PathPattern(self.pattern)

    def includes(self, parts: Parts) -> bool:
        """Whether `where` and `without` keep a file."""
        for rule, stays in ((self.where, True), (self.without, False)):
            for part, values in rule.items():
                if part not in parts:
                    raise BadDefinition(f"the pattern {self.pattern!r} has no part {{{part}}}")
                if (parts[part] in ([values] if isinstance(values, str) else values)) is not stays:
                    return False
        return True


def _read_tables(
    files: Mapping[str, Path | ArchiveFiles],
    options: FolderOptions,
    field: str,
    content: str,
    problem: Callable[[bytes], str] | None = None,
) -> Iterator[pa.Table]:
    problem = problem or _CONTENTS[content][1]
    wrong: list[_Damaged] = []
    with ExitStack() as stack:
        folders = _open_folders(files, options, content, stack)
        every = [parts for folder in folders for parts in folder.parts.values()]
        for folder in folders:
            yield from iterate_file_tables(folder.iterate_rows(every, field, problem, wrong))
    if wrong:
        raise BadData(_describe_damaged(wrong, len(every)))


def _open_folders(
    files: Mapping[str, Path | ArchiveFiles], options: FolderOptions, content: str, stack: ExitStack
) -> list[_Folder]:
    archives = {name: where for name, where in files.items() if name != options.ignore_list}
    listed = files.get(options.ignore_list)
    if options.ignore_list and not isinstance(listed, Path):
        raise BadDefinition(f"ignore_list: the distribution has no file {options.ignore_list}")
    left_out = set(read_utf8_lines(listed)) if isinstance(listed, Path) else set()
    return [_Folder(name, where, options, _CONTENTS[content][0], left_out, stack) for name, where in archives.items()]


class _Folder:
    """A folder or archive, with the files to read and the parts of their paths."""

    def __init__(
        self,
        name: str,
        where: Path | ArchiveFiles,
        options: FolderOptions,
        suffixes: Sequence[str],
        left_out: set[str],
        stack: ExitStack,
    ) -> None:
        self.options = options.of_file(name)
        archive = stack.enter_context(open_archive(where, name)) if isinstance(where, Path) else where
        archive = archive.subdir(self.options.folder)
        archive.announce_hidden()
        self.archive = archive.visible()
        self.part_of = self.options.fields or {part: part for part in self.options.paths.parts}
        """The part of the path that each field is taken from."""
        known = self.options.paths.parts
        if unknown := sorted({*self.part_of.values()} - {*known}):
            parts = ", ".join(f"{{{part}}}" for part in known)
            raise BadDefinition(
                f"the pattern {self.options.pattern!r} has no part {{{unknown[0]}}} (it has {parts}): add it where "
                "the paths have it, or give the field another part"
            )
        self.parts = self._select_files(self.options.suffixes or suffixes, left_out)

    def _select_files(self, suffixes: Sequence[str], left_out: set[str]) -> dict[str, Parts]:
        """Return the files to read, with the parts of their paths. Raises `BadData` for files that neither fit nor are
        to be ignored."""
        pattern, names, where = self.options.pattern, self.archive.names(), self.archive.where
        endings = {f".{suffix.lower().removeprefix('.')}".removesuffix(".") for suffix in suffixes}
        with_suffix = f"{pattern!r} with the suffix {' or '.join(sorted(endings))}"
        ignored = choose_paths(names, self.options.ignore) | left_out
        paths = PathPattern(escape_literal_folders(pattern, names))
        every = {
            path: paths.fits(path) if PurePosixPath(path).suffix.lower() in endings else None
            for path in names
            if path not in ignored
        }
        if others := [path for path, parts in every.items() if parts is None]:
            raise BadData(
                f"{where}: {len(others):,} of {len(every):,} files do not fit {with_suffix}: {shorten_list(others)}; "
                f"leave them out with {format_ignore_option(others)}"
            )
        fitting = {path: parts for path, parts in every.items() if parts is not None}
        self._refuse_case_clashes(fitting)
        selected_files = {path: parts for path, parts in fitting.items() if self.options.includes(parts)}
        if not selected_files:
            rest = ", and that `where` and `without` of `options` keep" if fitting else ""
            raise BadData(f"{where} has no file that fits {with_suffix} (options = {{ suffixes = [..] }}){rest}")
        return selected_files

    def _refuse_case_clashes(self, fitting: Mapping[str, Parts]) -> None:
        """Refuse folders that differ by case only: on a case-insensitive file system they would be one folder."""
        mapped_parts = {part for field, part in self.part_of.items() if field in self.options.maps}
        for part in self.options.paths.parts:
            if part in mapped_parts or f"/{{{part}}}/" not in f"/{self.options.pattern}":
                continue
            first: dict[str, str] = {}
            for parts in fitting.values():
                if (other := first.setdefault(parts[part].lower(), parts[part])) != parts[part]:
                    raise BadData(
                        f"{self.archive.where}: the {part} {other!r} and the {part} {parts[part]!r} differ by case "
                        "only: rename one, or give each a value with options = "
                        f"{{ maps = {{ {part} = {{ {other} = .., {parts[part]} = .. }} }} }}"
                    )

    def iterate_rows(
        self, every: Sequence[Parts], field: str, problem: Callable[[bytes], str], wrong: list[_Damaged]
    ) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
        """Yield the field, the bytes and the other fields of each file. `every` has the parts of all files, including
        those of other archives. Damaged files are added to `wrong`; after the first one nothing more is yielded."""
        maps = self._make_maps(every)
        for path, content in self.archive.walk(self.parts.__contains__):
            if (reason := problem(content)) and not choose_paths([path], self.options.accept):
                wrong.append((self.archive.where, path, reason))
            if not wrong:
                yield field, content, self._make_fields(path, maps)

    def _make_maps(self, every: Sequence[Parts]) -> dict[str, Mapping[str, Any]]:
        if unknown := sorted(set(self.options.maps) - set(self.part_of)):
            raise BadDefinition(
                f"maps.{unknown[0]}: no field has this name (the fields are {shorten_list(list(self.part_of))})"
            )
        return {
            field: index_levels(
                sorted({parts[self.part_of[field]] for parts in every}) if meaning == "sorted" else meaning
            )
            for field, meaning in self.options.maps.items()
        }

    def _make_fields(self, path: str, maps: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        fields: dict[str, Any] = {field: self.parts[path][part] for field, part in self.part_of.items()}
        for field, known in maps.items():
            if fields[field] not in known:
                raise BadData(
                    f"{self.archive.where}: {path} has the {self.part_of[field]} {fields[field]!r}, which is not one "
                    f"of {shorten_list(sorted(known))}: add it to `maps`, or leave the file out with `without` or "
                    "`ignore`"
                )
            fields[field] = known[fields[field]]
        return fields | self.options.constants | ({self.options.path: path} if self.options.path else {})


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
