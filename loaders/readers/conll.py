"""Sentences as lines of words with tags: the CoNLL formats (of 2000, 2003, 2012, CoNLL++, MasakhaNER) and CoNLL-U.

A line has a word and its annotations in columns, separated by tabs or, in a line without tabs, by runs of spaces; an
empty line ends a sentence. A sentence becomes one row: its words and its tags, each joined by spaces, so that the
n-th tag belongs to the n-th word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, BadDefinition
from ..acquire.archive_files import ArchiveFiles
from ._utf8_lines import read_utf8_lines

if TYPE_CHECKING:
    import pyarrow as pa

_NONE: Mapping[str, Any] = MappingProxyType({})
_WHITE, _SPACES = re.compile(r"\s+"), re.compile(" +")


def read(
    files: dict[str, Path | ArchiveFiles],
    *,
    words: int,
    tags: dict[str, int],
    constants: Mapping[str, dict[str, str]] = _NONE,
    names: str = "",
    retagged: Mapping[str, dict[str, str]] = _NONE,
    number: int | None = None,
    spans: str = "",
    bio: bool = False,
    types: Mapping[str, str] = _NONE,
    comments: str = "",
) -> pa.Table:
    """Fields: `words`, a text field for each of `tags` (field to column, from 0; negative ones count from the end), and
    `length`, the number of words.

    constants: for each file, the fields that are the same in all its rows. names: for a folder of files, a regular
    expression whose named groups are fields; files whose path does not match are not read. retagged: for a file
    `{ field = other file }`, where the other file has the same sentences with other tags (of the first of `tags`); the
    field is "" in files without one. number: the column of the word's number in CoNLL-U; multiword tokens ("3-4") and
    empty nodes ("5.1") are left out. spans: a further field, with the first of `tags` reduced to B, I and O. bio:
    convert tags from IOB1 (where B is used only for a span directly after another of its type) to IOB2 (where every
    span begins with B). Lines that begin with "-DOCSTART-" and comments of CoNLL-U are skipped. A space in a word
    becomes "_". types: new names for the types of spans ({ person = "PER" }). comments: the prefix of lines to skip, in
    files that are not CoNLL-U (in CoNLL-2012 "#" for "#begin" and "#end").
    """
    import pyarrow as pa

    others = {other for pairs in retagged.values() for other in pairs.values()}
    given = sorted({field for pairs in retagged.values() for field in pairs})
    first = next(iter(tags))
    rows: list[dict[str, Any]] = []
    for name, content, same in _iterate_inputs(files, constants, names, others):
        sentences = list(_iterate_sentences(name, content, number, comments))
        beside = {}
        for field, other in retagged.get(name, {}).items():
            again = files[other]
            assert isinstance(again, Path)
            beside[field] = list(_iterate_sentences(other, again.read_bytes(), number, comments))
            if [len(tokens) for tokens in beside[field]] != [len(tokens) for tokens in sentences]:
                raise BadData(f"the sentences of {other} do not have as many words as those of {name}")
        for index, sentence in enumerate(sentences):
            row: dict[str, Any] = {"words": _join_column(name, sentence, words), "length": len(sentence), **same}
            row |= {field: _join_column(name, sentence, column) for field, column in tags.items()}
            row |= {field: "" for field in given}
            row |= {field: _join_column(name, every[index], tags[first]) for field, every in beside.items()}
            if types:
                row |= {field: _rename_tags(row[field], types) for field in (*tags, *given)}
            if bio:
                row |= {field: " ".join(_iterate_span_starts(row[field].split(" "))) for field in tags}
            if spans:
                row[spans] = " ".join(tag[:1] for tag in row[first].split(" "))
            rows.append(row)
    if not rows:
        raise BadData(f"{', '.join(files)}: no sentences")
    return pa.Table.from_pylist(rows)


def _iterate_inputs(
    files: dict[str, Path | ArchiveFiles], constants: Mapping[str, dict[str, str]], names: str, others: set[str]
) -> Iterator[tuple[str, bytes, dict[str, str]]]:
    """Yield the name, the bytes and the constant fields of each file with sentences."""
    pattern = re.compile(names)
    for name, file in files.items():
        if isinstance(file, ArchiveFiles):
            fits = {path: match for path in file.names() if (match := pattern.fullmatch(path))}
            if not fits:
                raise BadData(f"{file.where}: no file fits the pattern {names}")
            for path, content in file.walk(fits.__contains__):
                yield f"{name}/{path}", content, {**constants.get(name, {}), **fits[path].groupdict()}
        elif name not in others:
            if constants and name not in constants:
                raise BadDefinition(f"conll: `constants` does not name {name}")
            yield name, file.read_bytes(), dict(constants.get(name, {}))


def _iterate_sentences(name: str, content: bytes, number: int | None, comments: str) -> Iterator[list[list[str]]]:
    sentence: list[list[str]] = []
    width = 0
    for line_number, line in enumerate([*read_utf8_lines(name, content), ""], 1):
        if not line.strip():
            if sentence:
                yield sentence
            sentence = []
            continue
        if (number is not None and line.startswith("#")) or (comments and line.startswith(comments)):
            continue
        cells = line.split("\t") if "\t" in line else _SPACES.split(line.strip(" "))
        if cells[0] == "-DOCSTART-":
            continue
        if number is not None and not cells[number].isdecimal():
            if not re.fullmatch(r"\d+[-.]\d+", cells[number]):
                raise BadData(f"{name}: line {line_number}: {cells[number][:20]!r} is not the number of a word")
            continue
        width = width or len(cells)
        if len(cells) != width:
            raise BadData(f"{name}: line {line_number} has {len(cells)} columns, but the lines before it have {width}")
        sentence.append(cells)


def _join_column(name: str, sentence: list[list[str]], column: int) -> str:
    try:
        texts = [_WHITE.sub("_", cells[column].strip()) for cells in sentence]
    except IndexError:
        raise BadData(f"{name}: a line has {len(sentence[0])} columns, so there is no column {column}") from None
    if "" in texts:
        raise BadData(f"{name}: an empty word in {' '.join(texts)[:40]!r}")
    return " ".join(texts)


def _rename_tags(tags: str, types: Mapping[str, str]) -> str:
    return " ".join(tag[:2] + types.get(tag[2:], tag[2:]) for tag in tags.split(" "))


def _iterate_span_starts(tags: list[str]) -> Iterator[str]:
    """Yield the tags with B at the beginning of each span."""
    for before, tag in zip(["O", *tags], tags, strict=False):
        goes_on = tag.startswith("I-") and before[2:] == tag[2:]
        yield tag if goes_on or not tag.startswith("I-") else f"B-{tag[2:]}"
