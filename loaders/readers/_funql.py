"""FunQL, the functional query language of GeoQuery (Kate, Wong and Mooney 2005), as terms.

The normal form is the one in which Shaw et al. 2021 (arXiv 2010.12725) state the splits of GeoQuery: `city(x)` with a
restriction `x` becomes `intersection(city, x)`, `city(all)` becomes `city`, and superlatives over relations
(`most(state(loc_1(x)))`) take their arguments side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...core.errors import BadData

ENTITIES = ("cityid", "countryid", "placeid", "riverid", "stateid")

_CLASSES = ("capital", "city", "lake", "major", "mountain", "place", "river", "state")
_UNWRAPPED = {"largest_one": 1, "smallest_one": 1, "most": 2, "fewest": 2}
_MARKS = ("(", ")", ",")
_TOKEN = re.compile(r"[(),]|[^(),]+")


class Term(NamedTuple):
    """A symbol and its arguments."""

    symbol: str
    arguments: tuple[Term, ...] = ()

    def __str__(self) -> str:
        """Tokens separated by spaces: `answer ( capital ( m0 ) )`."""
        return f"{self.symbol} ( {' , '.join(map(str, self.arguments))} )" if self.arguments else self.symbol


def parse_funql(text: str) -> Term:
    """Parse a term; quotes and spaces around symbols are ignored. Raises `BadData` if the brackets do not match."""
    tokens = [token for token in map(str.strip, _TOKEN.findall(text.replace("'", ""))) if token]
    try:
        term, end = _parse_term(tokens, 0)
    except (IndexError, ValueError):
        end = -1
    if end != len(tokens):
        raise BadData(f"not a FunQL term: {text[:60]!r}")
    return term


def _parse_term(tokens: list[str], at: int) -> tuple[Term, int]:
    """Parse the term that begins at token `at`; return it and the index after its end."""
    symbol, at = tokens[at], at + 1
    if symbol in _MARKS:
        raise ValueError(f"{symbol!r} found where a symbol is expected")
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
