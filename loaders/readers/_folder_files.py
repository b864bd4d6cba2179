"""Files in folders whose paths say what they are: the common part of pictures and sounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ...core.errors import BadData, BadDefinition, some_of
from ..acquire.members import Members, members
from ..files.patterns import PathPattern, choose_paths, with_literal_folders
from ._file_rows import file_tables
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
        whole = self.model_dump(exclude_defaults=True, exclude={"each"})
        constants = {**self.constants, **changes.get("constants", {})}
        return options_of(whole | changes | {"constants": constants}) if changes else self

    def kept(self, parts: Parts) -> bool:
        """Whether `where` and `without` let a file stay."""
        for rule, stays in ((self.where, True), (self.without, False)):
            for part, values in rule.items():
                if part not in parts:
                    raise BadDefinition(f"the pattern {self.pattern!r} has no part {{{part}}}")
                if (parts[part] in ([values] if isinstance(values, str) else values)) is not stays:
                    return False
        return True


def options_of(options: Mapping[str, Any]) -> FolderOptions:
    """The options; `BadDefinition` says which is none, or what is wrong with it."""
    try:
        return FolderOptions(**options)
    except ValidationError as error:
        raise BadDefinition(describe_option(error, FolderOptions, "a folder of files")) from error


def folder_tables(
    files: Mapping[str, Path | Members],
    options: FolderOptions,
    field: str,
    suffixes: Sequence[str],
    problem: Callable[[bytes], str],
) -> Iterator[pa.Table]:
    """A row for each file that fits the pattern, in tables of bounded size: its bytes as `field`, and its fields.
    `problem` says what is wrong with a file's bytes."""
    wrong: list[_Damaged] = []
    with ExitStack() as opened:
        folders = _opened(files, options, suffixes, opened)
        every = [parts for _, _, found in folders for parts in found.values()]
        for held, own, found in folders:
            yield from file_tables(_rows(held, own, field, found, _Fields(held, own, found, every), problem, wrong))
    if wrong:
        raise BadData(_describe(wrong, len(every)))


def folder_parts(files: Mapping[str, Path | Members], options: FolderOptions, suffixes: Sequence[str]) -> list[Parts]:
    """The parts of each file's path, of all files that would be read."""
    with ExitStack() as opened:
        return [parts for _, _, found in _opened(files, options, suffixes, opened) for parts in found.values()]


def _opened(
    files: Mapping[str, Path | Members], options: FolderOptions, suffixes: Sequence[str], opened: ExitStack
) -> list[tuple[Members, FolderOptions, dict[str, Parts]]]:
    """Each archive or folder with its options and the files that are read."""
    folders = []
    for name, where in files.items():
        own = options.of_file(name)
        held = (opened.enter_context(members(where, name)) if isinstance(where, Path) else where).below(own.folder)
        held.announce_hidden()
        held = held.visible()
        folders.append((held, own, _fitting(held, own, own.suffixes or suffixes)))
    return folders


def _rows(
    held: Members,
    options: FolderOptions,
    field: str,
    found: Mapping[str, Parts],
    fields: _Fields,
    problem: Callable[[bytes], str],
    wrong: list[_Damaged],
) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    """The field, bytes and fields of each file; those with a problem go to `wrong`, and after one nothing is given."""
    for path, content in held.walk(found.__contains__):
        if (said := problem(content)) and not choose_paths([path], options.accept):
            wrong.append((held.where, path, said))
        if not wrong:
            yield field, content, fields.of(path)


def _describe(wrong: Sequence[_Damaged], count: int) -> str:
    """What is wrong with files, and the options that leave them out or keep them."""
    places = {where for where, _, _ in wrong}
    head = f"{', '.join(sorted(places))}: "
    if len(wrong) > 1:
        head += f"{len(wrong):,} of {count:,} files are damaged, and so the first: "
    each = [f"{path if len(places) == 1 else f'{where}: {path}'} {said}" for where, path, said in wrong[:_SHOWN]]
    out = format_ignore_option([path for _, path, _ in wrong])
    return (
        f"{head}{'; '.join(each)}: put right what is damaged, leave it out by {out}, or keep it as it is by `accept` "
        "instead"
    )


def format_ignore_option(paths: Sequence[str]) -> str:
    """The option that leaves these files out, as it is written in a draft; of many, the first."""
    shown = ", ".join(json.dumps(path, ensure_ascii=False) for path in paths[:_SHOWN])
    return f"options = {{ ignore = [{shown}{', ..' if len(paths) > _SHOWN else ''}] }}"


def _fitting(held: Members, options: FolderOptions, suffixes: Sequence[str]) -> dict[str, Parts]:
    """The files that are read, with their parts; `BadData` names those that are neither read nor to be ignored."""
    endings = {f".{suffix.lower().removeprefix('.')}" for suffix in suffixes}
    found, others = {}, []
    ignored = choose_paths(held.names(), options.ignore)
    paths = PathPattern(with_literal_folders(options.pattern, held.names()))
    for path in held.names():
        if path in ignored:
            continue
        parts = paths.fits(path) if PurePosixPath(path).suffix.lower() in endings else None
        if parts is None:
            others.append(path)
        else:
            found[path] = parts
    if others:
        raise BadData(
            f"{held.where}: {len(others):,} of {len(others) + len(found):,} files do not fit {options.pattern!r} with "
            f"the suffix {' or '.join(sorted(endings))}: {some_of(others)}; leave them out by "
            f"{format_ignore_option(others)}"
        )
    _refuse_cases(held, options, found)
    kept = {path: parts for path, parts in found.items() if options.kept(parts)}
    if not kept:
        rest = "" if not found else ", and that `where` and `without` of `options` let stay"
        raise BadData(
            f"{held.where} has no file that fits {options.pattern!r} with the suffix {' or '.join(sorted(endings))} "
            f"(options = {{ suffixes = [..] }}){rest}"
        )
    return kept


def _refuse_cases(held: Members, options: FolderOptions, found: Mapping[str, Parts]) -> None:
    """Two folders that differ by case only are one where the file system makes no difference."""
    said = {part for field, part in _named(options).items() if field in options.maps}
    for part in options.paths.parts:
        if part in said or f"/{{{part}}}/" not in f"/{options.pattern}":
            continue
        first: dict[str, str] = {}
        for parts in found.values():
            if (other := first.setdefault(parts[part].lower(), parts[part])) != parts[part]:
                raise BadData(
                    f"{held.where}: the {part} {other!r} and the {part} {parts[part]!r} differ by case only: rename "
                    f"one, or say what each is by options = {{ maps = {{ {part} = {{ {other} = .., {parts[part]} = .. "
                    "} } }"
                )


def _named(options: FolderOptions) -> dict[str, str]:
    """The part that each field is."""
    return options.fields or {part: part for part in options.paths.parts}


class _Fields:
    """What a file's path says, as fields. `every` has the parts of all files, of other archives too."""

    def __init__(
        self, held: Members, options: FolderOptions, found: Mapping[str, Parts], every: Sequence[Parts]
    ) -> None:
        self._where, self._options, self._found, self._named = held.where, options, found, _named(options)
        if unknown := sorted(set(self._named.values()) - set(options.paths.parts)):
            raise BadDefinition(f"the pattern {options.pattern!r} has no part {{{unknown[0]}}}")
        if unknown := sorted(set(options.maps) - set(self._named)):
            raise BadDefinition(f"maps.{unknown[0]}: there is no such field (there are {some_of(list(self._named))})")
        self._maps = {
            field: _meanings(sorted({parts[self._named[field]] for parts in every}) if said == "sorted" else said)
            for field, said in options.maps.items()
        }

    def of(self, path: str) -> dict[str, Any]:
        parts, options = self._found[path], self._options
        fields: dict[str, Any] = {field: parts[part] for field, part in self._named.items()}
        for field, known in self._maps.items():
            if fields[field] not in known:
                raise BadData(
                    f"{self._where}: {path} has the {self._named[field]} {fields[field]!r}, which is none of "
                    f"{some_of(sorted(known))}: add it to `maps`, or leave it out by `without` or `ignore`"
                )
            fields[field] = known[fields[field]]
        fields |= options.constants
        return fields | ({options.path: path} if options.path else {})


def _meanings(said: Mapping[str, Value] | Sequence[str | list[str]] | str) -> Mapping[str, Value]:
    """The value of each text: as said, or the place of the text in a list."""
    if isinstance(said, Mapping):
        return said
    levels = [[level] if isinstance(level, str) else level for level in said]
    return {text: place for place, level in enumerate(levels) for text in level}
