"""GeoQuery: the XML of 892 questions about US geography, as pairs of an anonymised question and its FunQL.

Read as Shaw et al. 2021 (arXiv 2010.12725) did for the splits they published: the English question in lower case
without its final mark, FunQL in normal form, and each entity of the query that the question names written `m0` or `m1`
in both, so that a model does not need to know place names.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from ...core.errors import BadData, BadDefinition
from ._funql import Term, iterate_entities, normalise_term, parse_funql, replace_subterms

if TYPE_CHECKING:
    import pyarrow as pa

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


def read(files: dict[str, Path], *, questions: int) -> pa.Table:
    """The first `questions` examples (the classic corpus has 880; those after them are later additions).

    Fields: `question` and `funql`, anonymised; `number`, the example's number in the file, which the published splits
    use; `words`, the length of the question.
    """
    import pyarrow as pa

    if len(files) != 1:
        raise BadDefinition("geoquery reads one file")
    ((name, path),) = files.items()
    try:
        examples = ElementTree.parse(path).getroot().findall("example")
    except ElementTree.ParseError as error:
        raise BadData(f"{name} is not well-formed XML: {error}") from error
    rows = []
    for example in examples:
        number = int(example.get("id", "-1"))
        if not 0 <= number < questions:
            continue
        query = normalise_term(parse_funql(_find_text(example, "mrl", "geo-funql", name)))
        words, marks = _anonymise_entities(_split_words(_find_text(example, "nl", "en", name)), query)
        rows.append(
            {
                "question": " ".join(words),
                "funql": str(replace_subterms(query, marks)),
                "number": number,
                "words": len(words),
            }
        )
    return pa.Table.from_pylist(rows)


def _find_text(example: ElementTree.Element, tag: str, language: str, name: str) -> str:
    for element in example.findall(tag):
        if element.get("lang") == language and element.text:
            return element.text.strip()
    raise BadData(f"{name}: example {example.get('id')} has no {tag} in {language}")


def _split_words(question: str) -> list[str]:
    return question.lower().rstrip("?").rstrip(".").replace(" '", "").split()


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
