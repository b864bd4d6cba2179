"""Texts and their labels in lines: words with tags, inflections, counts of words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.errors import BadData
from ..acquire.archive_files import ArchiveFiles
from ._layout import read_utf8_lines

PUBLISHED_FORM = True

_NONE: Mapping[str, Any] = MappingProxyType({})
_WHITE, _SPACES = re.compile(r"\s+"), re.compile(" +")


def conll(
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
) -> pa.Table:
    """Sentences as lines of words with tags: the CoNLL formats (of 2000, 2003, 2012, CoNLL++, MasakhaNER) and CoNLL-U.

    A line has a word and its annotations in columns, separated by tabs or, in a line without tabs, by runs of spaces;
    an empty line ends a sentence. A sentence becomes one row: its words and its tags, each joined by spaces, so that
    the n-th tag belongs to the n-th word.

    Fields: `words`, a text field for each of `tags` (field to column, from 0; negative ones count from the end), and
    `length`, the number of words.

    constants: for each file, the fields that are the same in all its rows. names: for a folder of files, a regular
    expression whose named groups are fields; files whose path does not match are not read. retagged: for a file `{
    field = other file }`, where the other file has the same sentences with other tags (of the first of `tags`); the
    field is "" in files without one. number: the column of the word's number in CoNLL-U; multiword tokens ("3-4") and
    empty nodes ("5.1") are left out. spans: a further field, with the first of `tags` reduced to B, I and O. bio:
    convert tags from IOB1 (where B is used only for a span directly after another of its type) to IOB2 (where every
    span begins with B). Lines that begin with "-DOCSTART-" and comments of CoNLL-U are skipped. A space in a word
    becomes "_". types: new names for the types of spans ({ person = "PER" }).
    """
    others = {other for pairs in retagged.values() for other in pairs.values()}
    given = sorted({field for pairs in retagged.values() for field in pairs})
    first = next(iter(tags))
    rows: list[dict[str, Any]] = []
    for name, content, same in _iterate_tagged_files(files, constants, names, others):
        sentences = list(_iterate_sentences(name, content, number))
        beside = {}
        for field, other in retagged.get(name, {}).items():
            again = files[other]
            assert isinstance(again, Path)
            beside[field] = list(_iterate_sentences(other, again.read_bytes(), number))
            if list(map(len, beside[field])) != list(map(len, sentences)):
                raise BadData(f"the sentences of {other} do not have as many words as those of {name}")
        for index, sentence in enumerate(sentences):
            row: dict[str, Any] = {"words": _join_column(sentence, words), "length": len(sentence), **same}
            row |= {field: _join_column(sentence, column) for field, column in tags.items()}
            row |= {field: "" for field in given}
            row |= {field: _join_column(every[index], tags[first]) for field, every in beside.items()}
            if types:
                row |= {field: _rename_tags(row[field], types) for field in (*tags, *given)}
            if bio:
                row |= {field: " ".join(_iterate_span_starts(row[field].split(" "))) for field in tags}
            if spans:
                row[spans] = " ".join(tag[:1] for tag in row[first].split(" "))
            rows.append(row)
    return pa.Table.from_pylist(rows)


def _iterate_tagged_files(
    files: dict[str, Path | ArchiveFiles], constants: Mapping[str, dict[str, str]], names: str, others: set[str]
) -> Iterator[tuple[str, bytes, dict[str, str]]]:
    """Yield the name, the bytes and the constant fields of each file with sentences."""
    pattern = re.compile(names)
    for name, file in files.items():
        if isinstance(file, ArchiveFiles):
            fits = {path: match for path in file.names() if (match := pattern.fullmatch(path))}
            for path, content in file.walk(fits.__contains__):
                yield f"{name}/{path}", content, {**constants.get(name, {}), **fits[path].groupdict()}
        elif name not in others:
            yield name, file.read_bytes(), dict(constants.get(name, {}))


def _iterate_sentences(name: str, content: bytes, number: int | None) -> Iterator[list[list[str]]]:
    sentence: list[list[str]] = []
    for line in [*read_utf8_lines(content), ""]:
        if not line.strip():
            if sentence:
                yield sentence
            sentence = []
            continue
        if number is not None and line.startswith("#"):
            continue
        cells = line.split("\t") if "\t" in line else _SPACES.split(line.strip(" "))
        if cells[0] == "-DOCSTART-":
            continue
        if sentence and len(cells) != len(sentence[0]):
            raise BadData(f"{name}: {line[:40]!r} has {len(cells)} columns, but the line before it {len(sentence[0])}")
        if number is None or cells[number].isdecimal():
            sentence.append(cells)


def _join_column(sentence: list[list[str]], column: int) -> str:
    return " ".join(_WHITE.sub("_", cells[column].strip()) for cells in sentence)


def _rename_tags(tags: str, types: Mapping[str, str]) -> str:
    return " ".join(tag[:2] + types.get(tag[2:], tag[2:]) for tag in tags.split(" "))


def _iterate_span_starts(tags: list[str]) -> Iterator[str]:
    """Yield the tags with B at the beginning of each span."""
    for before, tag in zip(["O", *tags], tags, strict=False):
        goes_on = tag.startswith("I-") and before[2:] == tag[2:]
        yield tag if goes_on or not tag.startswith("I-") else f"B-{tag[2:]}"


_SHOWN = {(True, True): "both", (True, False): "lemma", (False, True): "features", (False, False): "neither"}


def inflections(files: dict[str, Path], *, train: str, tests: dict[str, str]) -> pa.Table:
    """Inflection (SIGMORPHON's shared tasks): a lemma and features become a form; test rows are marked by what of them
    is in the training data.

    Fields: `lemma`, `features` (separated by spaces, in the published order), `form`, and `origin`: "train", or the
    file's name in `tests` and what of the row is in the training file, such as "test both" (its lemma and its set of
    features), "test lemma", "test features" or "test neither".

    Lines are lemma, form and features, separated by tabs; features are separated by ";".
    """
    columns: dict[str, list[str]] = {name: [] for name in ("lemma", "features", "form", "origin")}
    lemmas: set[str] = set()
    bundles: set[str] = set()
    for name, origin in {train: "", **tests}.items():
        for line in read_utf8_lines(files[name]):
            lemma, form, features = line.split("\t")
            if not origin:
                lemmas.add(lemma)
                bundles.add(features)
            columns["lemma"].append(lemma)
            columns["features"].append(features.replace(";", " "))
            columns["form"].append(form)
            shown = _SHOWN[lemma in lemmas, features in bundles]
            columns["origin"].append(f"{origin} {shown}" if origin else "train")
    return pa.table(columns)


def parallel_lines(
    files: dict[str, Path], *, pairs: dict[str, list[str]], given: str, wanted: str, counted: list[str] | None = None
) -> pa.Table:
    """Inputs and outputs in two parallel files of lines.

    Fields: the line of the first file (named by `given`) and of the second (named by `wanted`), `published` (the key of
    `pairs`, which gives the two files), `skeleton` (the line's words that are in `counted`), and `functions` (their
    number).
    """
    known = set(counted or ())
    rows: dict[str, list[str | int]] = {name: [] for name in (given, wanted, "published", "skeleton", "functions")}
    for part, (source, target) in pairs.items():
        left, right = (files[name].read_text("utf-8").splitlines() for name in (source, target))
        for line, target_line in zip(left, right, strict=True):
            rows[given].append(line.strip())
            rows[wanted].append(target_line.strip())
            rows["published"].append(part)
            known_words = [word for word in line.split() if word in known]
            rows["skeleton"].append(" ".join(known_words))
            rows["functions"].append(len(known_words))
    return pa.table(rows)


def svmlight(
    files: dict[str, Path],
    *,
    words: str,
    label: str,
    levels: list[str],
    origin: Mapping[str, dict[str, str]] = _NONE,
) -> pa.Table:
    """Sparse rows in SVMlight's format: `label number:value number:value ..`, such as bags of words.

    Read the rows of all files in order.

    words: the field with a row's terms as text: term 17 is "t17", repeated as often as it was counted, in
    the order of the terms' numbers. label: the field with the index of the row's label in `levels`. origin: `{field:
    {file: text}}`, fields that depend on the file.
    """
    texts, labels, rows = [], [], []
    for path in files.values():
        lines = path.read_text("ascii").splitlines()
        for line in lines:
            first, *pairs = line.split()
            labels.append(levels.index(first))
            terms = sorted(tuple(map(int, pair.split(":"))) for pair in pairs)
            texts.append(" ".join(f"t{term}" for term, count in terms for _ in range(count)))
        rows.append(len(lines))
    fields = {words: pa.array(texts, pa.string()), label: np.array(labels, np.int64)}
    for field, meanings in origin.items():
        fields[field] = pa.array(np.repeat([meanings[name] for name in files], rows).tolist(), pa.string())
    return pa.table(fields)
