"""Commands, questions and sentences, and their formal counterparts."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

from ...core.documents import parse_json, read_json
from ._layout import get_archive

PUBLISHED_FORM = True

_TEXT = rb'"%s"\s*:\s*"((?:[^"\\]|\\.)*)"'
"""The pattern of a string value in the JSON file, by its key."""
_INDEX_LISTS = {"trainIdxs": "train", "devIdxs": "dev", "testIdxs": "test"}


def cfq(files: dict[str, Any], *, folder: str, splits: dict[str, str]) -> pa.Table:
    """CFQ: questions and SPARQL queries in one JSON list, and for each split a file with the indices of its rows
    (Keysers et al. 2020, arXiv 1912.09713).

    Fields: `question` and `query`, with placeholders for entities, and a field for each of `splits` (its file below
    `folder`/splits): train, dev, test, or "" for a row that it leaves out; of two parts of a row the later one.
    """
    archive = get_archive(files)
    # Texts are a small part of a file of 4 GB, and parsing all of it as JSON would take ten times as much memory.
    content = archive.read(f"{folder}/dataset.json")
    columns: dict[str, Any] = {
        field: [parse_json(b'"%s"' % match[1]) for match in re.finditer(_TEXT % key, content)]
        for field, key in (("question", b"questionPatternModEntities"), ("query", b"sparqlPatternModEntities"))
    }
    for field, name in splits.items():
        split = parse_json(archive.read(f"{folder}/splits/{name}"))
        part = np.full(len(columns["question"]), "", dtype=object)
        for key, which in _INDEX_LISTS.items():
            part[np.asarray(split.get(key, []), np.int64)] = which
        columns[field] = part.tolist()
    return pa.table(columns)


def gscan(files: dict[str, Any], *, member: str, parts: list[str]) -> pa.Table:
    """gSCAN: commands in a grid world and the actions that execute them, in one JSON file with a list for each part
    (Ruis et al. 2020, arXiv 2003.05161).

    Fields: `command` and `actions` (words separated by spaces), `length` (the number of actions), `situation` (the
    grid, as JSON) and `published` (one of `parts`).
    """
    lists = parse_json(get_archive(files).read(member))["examples"]
    return pa.Table.from_pylist(
        [
            {
                "command": example["command"].replace(",", " "),
                "actions": example["target_commands"].replace(",", " "),
                "length": example["target_commands"].count(",") + 1,
                "situation": json.dumps(example["situation"], sort_keys=True, separators=(",", ":")),
                "published": part,
            }
            for part in parts
            for example in lists[part]
        ]
    )


def text_to_sql(files: dict[str, Path]) -> pa.Table:
    """Questions and their SQL, in the format in which Finegan-Dollak et al. 2018 (arXiv 1806.09029) published eight
    data sets: a JSON list of queries, each with all its questions.

    One row per question, with the fields `question`; `sql`, the first of the equivalent queries; `query`, the query's
    number in the file; `query_split` and `question_split`, the published parts by query and by question; and `words`,
    the number of words of the question.

    Values are the variables of the file ("state_name0"), in both question and query.
    """
    (path,) = files.values()
    return pa.Table.from_pylist(
        [
            {
                "question": " ".join(words := sentence["text"].split()),
                "sql": " ".join(query["sql"][0].split()),
                "query": number,
                "query_split": query["query-split"],
                "question_split": sentence["question-split"],
                "words": len(words),
            }
            for number, query in enumerate(read_json(path))
            for sentence in query["sentences"]
        ]
    )


_KINDS = ("cp", "pp", "rc")
_LINKS = {
    "cp": re.compile(r"\. ccomp \( x _ (\d+) , x _ (\d+) \)"),
    "pp": re.compile(r"\. nmod \. \w+ \( x _ (\d+) , x _ (\d+) \)"),
}


def semantic_parses(
    files: dict[str, Path],
    *,
    parts: dict[str, str],
    notation: str,
    archives: dict[str, dict[str, str]] | None = None,
) -> pa.Table:
    """Sentences and logical forms in the format of COGS and SLOG: sentence TAB logical form TAB type, one row per line.

    Depths of recursion are computed from the logical form: how many sentential complements (`cp_depth`), prepositional
    phrases (`pp_depth`) and relative clauses (`rc_depth`) are nested, and the greatest of the three (`depth`). Kim and
    Linzen 2020 (arXiv 2010.05465), section 3.2; Li et al. 2023 (SLOG, arXiv 2310.15040), 2.1.

    Fields: `sentence`, `logical_form`, `type`, `origin`, `depth`, `cp_depth`, `pp_depth`, `rc_depth` and `copies`, with
    one row for each distinct line of a part; `copies` is how often the line occurs.

    parts: the published part (`origin`) of each file. notation: "indexed" (COGS: `burn . theme ( x _ 6 , x _ 4 )`; it
    has no relative clauses) or "variable_free" (SLOG: `burn ( theme = box )`). archives: for a file that is a zip, the
    `member` to read and its `password`.
    """
    measure = {"indexed": _measure_chains, "variable_free": _measure_nesting}[notation]
    copies: Counter[tuple[str, ...]] = Counter()
    for name, path in files.items():
        for line in _read_lines(path, (archives or {}).get(name)):
            copies[*line.split("\t"), parts[name]] += 1
    sentences, forms, types, origins = map(list, zip(*copies, strict=True))
    depths = [measure(form) for form in forms]
    columns: dict[str, list[str] | list[int]] = {
        "sentence": sentences,
        "logical_form": forms,
        "type": types,
        "origin": origins,
        "copies": list(copies.values()),
        "depth": [max(row_depths.values()) for row_depths in depths],
    }
    return pa.table(columns | {f"{kind}_depth": [row_depths[kind] for row_depths in depths] for kind in _KINDS})


def _read_lines(path: Path, archive: dict[str, str] | None) -> list[str]:
    if archive is None:
        return path.read_text("utf-8").splitlines()
    with zipfile.ZipFile(path) as bundle:
        return bundle.read(archive["member"], archive.get("password", "").encode()).decode("utf-8").splitlines()


def _measure_chains(form: str) -> dict[str, int]:
    """Compute depths in the indexed notation: the longest chain of links from variable to variable."""
    depths = {"rc": 0}
    for kind, link in _LINKS.items():
        # Every variable is the head of at most one complement and at most one modifier, so links form a mapping.
        below = dict(link.findall(form))
        depths[kind] = 0
        for head in set(below) - set(below.values()):
            length = 0
            while head in below:
                head, length = below[head], length + 1
            depths[kind] = max(depths[kind], length)
    return depths


def _measure_nesting(form: str) -> dict[str, int]:
    """Compute depths in the variable-free notation: how many roles of a kind are open at once."""
    depths = dict.fromkeys(_KINDS, 0)
    tokens, opened, role = form.split(), [""], ""
    for index, token in enumerate(tokens):
        if token == "=":
            role = _classify_role(tokens, index)
            if role:
                depths[role] = max(depths[role], opened.count(role) + 1)
        elif token == "(":
            opened.append(role)
            role = ""
        elif token in (",", ")"):
            role = ""
            if token == ")":
                opened.pop()
    return depths


def _classify_role(tokens: list[str], index: int) -> str:
    """Return the kind of recursion of the role before the "=" at `index`; "" for an argument."""
    if tokens[index - 1] == "ccomp":
        return "cp"
    if tokens[index - 1] == "nmod":
        return "rc"
    return "pp" if tokens[index - 3 : index - 1] == ["nmod", "."] else ""


_COUNTRY = ("america", "continental us", "united states", "us", "usa", "country")
_STATES = {
    "az": "arizona",
    "ga": "georgia",
    "ma": "massachusetts",
    "me": "maine",
    "mn": "minnesota",
    "mo": "missouri",
    "pa": "pennsylvania",
    "sd": "south dakota",
    "tx": "texas",
    "wa": "washington",
}
"""States by their abbreviations in queries for cities."""


def geoquery(files: dict[str, Path], *, questions: int) -> pa.Table:
    """GeoQuery: the XML of 892 questions about US geography, as pairs of an anonymised question and its FunQL.

    Read as Shaw et al. 2021 (arXiv 2010.12725) did for the splits they published: the English question in lower case
    without its final mark, FunQL in normal form, and each entity of the query that the question names written `m0` or
    `m1` in both, so that a model does not need to know place names.

    The first `questions` examples (the classic corpus has 880; those after them are later additions).

    Fields: `question` and `funql`, anonymised; `number`, the example's number in the file, which the published splits
    use; `words`, the length of the question.
    """
    (path,) = files.values()
    rows = []
    for example in ElementTree.parse(path).getroot().findall("example"):
        number = int(example.get("id", "-1"))
        if not 0 <= number < questions:
            continue
        query = normalise_term(parse_funql(example.findtext("mrl[@lang='geo-funql']", "")))
        question = example.findtext("nl[@lang='en']", "").strip().lower().rstrip("?").rstrip(".").replace(" '", "")
        words, marks = _anonymise_entities(question.split(), query)
        rows.append(
            {
                "question": " ".join(words),
                "funql": str(replace_subterms(query, marks)),
                "number": number,
                "words": len(words),
            }
        )
    return pa.Table.from_pylist(rows)


def _anonymise_entities(words: list[str], query: Term) -> tuple[list[str], dict[Term, str]]:
    """Replace each entity of the query that the question names by a mark; return the words and the marks.

    The first mark goes to the longest entity, so that "new york city" is not taken for the state within it.
    """
    marks: dict[Term, str] = {}
    for entity in sorted(dict.fromkeys(iterate_entities(query)), key=lambda entity: -len(str(entity))):
        for alias in sorted(map(str.split, _list_aliases(entity)), key=len, reverse=True):
            places = (at for at in range(len(words)) if words[at : at + len(alias)] == alias)
            at = next(places, None)
            if at is not None:
                marks[entity] = f"m{len(marks)}"
                words = [*words[:at], marks[entity], *words[at + len(alias) :]]
                break
    return words, marks


def _list_aliases(entity: Term) -> list[str]:
    """Return the names that a question may use for an entity; a city with a state in the query is named with it."""
    name, *state = (argument.symbol for argument in entity.arguments)
    if entity.symbol == "countryid":
        return list(_COUNTRY)
    if state and state != ["_"]:
        return [f"{name} {state[0]}", f"{name} {_STATES.get(state[0], state[0])}"]
    return [name]


ENTITIES = ("cityid", "countryid", "placeid", "riverid", "stateid")
_CLASSES = ("capital", "city", "lake", "major", "mountain", "place", "river", "state")
_UNWRAPPED = {"largest_one": 1, "smallest_one": 1, "most": 2, "fewest": 2}
_TOKEN = re.compile(r"[(),]|[^(),]+")


class Term(NamedTuple):
    """A symbol and its arguments."""

    symbol: str
    arguments: tuple[Term, ...] = ()

    def __str__(self) -> str:
        """Tokens separated by spaces: `answer ( capital ( m0 ) )`."""
        return f"{self.symbol} ( {' , '.join(map(str, self.arguments))} )" if self.arguments else self.symbol


def parse_funql(text: str) -> Term:
    """Parse a term; quotes and spaces around symbols are ignored."""
    return _parse_term([token for token in map(str.strip, _TOKEN.findall(text.replace("'", ""))) if token], 0)[0]


def _parse_term(tokens: list[str], at: int) -> tuple[Term, int]:
    """Parse the term that begins at token `at`; return it and the index after its end."""
    symbol, at = tokens[at], at + 1
    if at == len(tokens) or tokens[at] != "(":
        return Term(symbol), at
    arguments: list[Term] = []
    while tokens[at] != ")":
        argument, at = _parse_term(tokens, at + 1)
        arguments.append(argument)
    return Term(symbol, tuple(arguments)), at + 1


def normalise_term(term: Term) -> Term:
    """Return the normal form of a term."""
    symbol, arguments = term
    if symbol in ENTITIES or not arguments:
        return term
    if symbol in _CLASSES:
        (restriction,) = arguments
        return (
            Term(symbol)
            if restriction == Term("all")
            else Term("intersection", (Term(symbol), normalise_term(restriction)))
        )
    relations: list[Term] = []
    for _ in range(_UNWRAPPED.get(symbol, 0)):
        (inner,) = arguments
        relations.append(Term(inner.symbol))
        arguments = inner.arguments
    return Term(symbol, (*relations, *map(normalise_term, arguments)))


def iterate_entities(term: Term) -> Iterator[Term]:
    """Yield the entities in a term from left to right, repeats included."""
    if term.symbol in ENTITIES:
        yield term
        return
    for argument in term.arguments:
        yield from iterate_entities(argument)


def replace_subterms(term: Term, by: dict[Term, str]) -> Term:
    """Replace subterms of a term by single symbols."""
    if term in by:
        return Term(by[term])
    return Term(term.symbol, tuple(replace_subterms(argument, by) for argument in term.arguments))
