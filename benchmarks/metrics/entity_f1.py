"""Entity F1 of tagged words: 2 right / (true + predicted) over all entities; right means correct span and type.

The metric of CoNLL-2000 and CoNLL-2003 (Tjong Kim Sang and De Meulder 2003, "Introduction to the CoNLL-2003 Shared
Task"). Tags are O, or a prefix and a type ("B-PER"); without types ("B") all entities have the same type. The option
`scheme` defines entities:

    conlleval   any of B, I, E and S, in any order, as in the script of the shared task (the default): an I that
                follows no entity of its type starts one
    IOB1        a run of I of one type; B only separates two adjacent entities of one type
    IOB2        B and the following I of its type; any other I is outside
    BIOES       S, or B, any number of I, and E, all of one type; an unclosed sequence is not an entity

The first is seqeval's default, the others its strict mode (Nakayama 2018, github.com/chakki-works/seqeval); both are
checked against seqeval 1.2.2 in the tests.

A word without a tag counts as O, and superfluous tags are ignored; all entities of a row without an answer are missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from ._base import Answers, Columns, State, StrictOptions, Task, Values, add_states, split_tokens
from .token_accuracy import chance as chance

VERSION = 1
TASKS = ("sequence",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)

merge = add_states

Entity = tuple[str, int, int]
"""The type of an entity, its first word, and the word after its last."""

_OUTSIDE = ("O", "")
_MARKS = "BIES"


class Options(StrictOptions):
    """The tagging scheme."""

    scheme: Literal["conlleval", "IOB1", "IOB2", "BIOES"] = "conlleval"


OPTIONS = Options


def update(answers: Answers, truth: Values, task: Task, columns: Columns, options: Options) -> State:
    """Count `right`, `named` (predicted) and `true` entities, int64."""
    right = named = true = 0
    for given, expected in zip(answers.prediction, truth, strict=True):
        true_tags = split_tokens(expected, task)
        predicted_tags = [] if given is None else list(split_tokens(given, task)[: len(true_tags)])
        true_entities = set(iterate_entities(true_tags, options.scheme))
        predicted_entities = set(
            iterate_entities([*predicted_tags, *["O"] * (len(true_tags) - len(predicted_tags))], options.scheme)
        )
        right, named, true = (
            right + len(true_entities & predicted_entities),
            named + len(predicted_entities),
            true + len(true_entities),
        )
    return {"right": np.array(right), "named": np.array(named), "true": np.array(true)}


def compute(state: State, options: Options) -> float:
    """Compute 2 right / (true + named); NaN if there are no true and no predicted entities."""
    total = state["true"] + state["named"]
    return float(2 * state["right"] / total) if total else float("nan")


def iterate_entities(tags: Sequence[str], scheme: str = "conlleval") -> Iterator[Entity]:
    """Iterate over the entities of a tagged sentence, in order."""
    marks = [_split_tag(tag) for tag in tags]
    start: int | None = None
    for at, (before, now) in enumerate(pairwise([_OUTSIDE, *marks, _OUTSIDE])):
        joins = start is not None and _is_continuation(before, now, scheme)
        if start is not None and not joins:
            if _is_entity_end(before, now, scheme):
                yield before[1], start, at
            start = None
        if not joins and _is_entity_start(before, now, scheme):
            start = at


def _split_tag(tag: str) -> tuple[str, str]:
    """Split a tag into prefix and type; any other prefix is outside."""
    mark, kind = tag[:1], tag[2:] if tag[1:2] == "-" else tag[1:]
    return (mark, kind) if mark and mark in _MARKS else _OUTSIDE


def _is_continuation(before: tuple[str, str], now: tuple[str, str], scheme: str) -> bool:
    """Return whether a word continues the entity of the previous word."""
    goes_on = "I" if scheme in ("IOB1", "IOB2") else "IE"
    return now[0] != "O" and now[0] in goes_on and before[0] not in "ES" and before[1] == now[1]


def _is_entity_end(before: tuple[str, str], now: tuple[str, str], scheme: str) -> bool:
    """Return whether the span that ends before a word is an entity: in BIOES it must be closed; in IOB1 a B after a B
    of another type is invalid, and seqeval drops the span before it."""
    if scheme == "IOB1":
        return not (before[0] == now[0] == "B" and before[1] != now[1])
    return scheme != "BIOES" or before[0] in "ES"


def _is_entity_start(before: tuple[str, str], now: tuple[str, str], scheme: str) -> bool:
    """Return whether a word that does not continue an entity starts one."""
    if scheme == "IOB1":
        return now[0] == "I" or (now[0] == "B" and before[0] in "BI" and before[1] == now[1])
    return now[0] in {"conlleval": "BIES", "IOB2": "B", "BIOES": "BS"}[scheme]
