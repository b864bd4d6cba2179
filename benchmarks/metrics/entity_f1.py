"""Entity F1 of tagged words: 2 right / (true + named) over all entities, each right where its words and its type are.

The measure of CoNLL-2000 and CoNLL-2003 (Tjong Kim Sang and De Meulder 2003, "Introduction to the CoNLL-2003 Shared
Task"). Tags are O, or a mark and a type ("B-PER"); without a type ("B") all entities are of one. The option `scheme`
says what is an entity:

    conlleval   any of B, I, E and S, in whatever order, as the script of the shared task counts (the default): an I
                that follows no entity of its type begins one
    IOB1        a run of I of one type; B only parts two entities of one type that touch
    IOB2        B, and the I of its type that follow; any other I is outside
    BIOES       S, or B, any I, and E, all of one type; what is not closed is no entity

The first is seqeval's default, the others its strict mode (Nakayama 2018, github.com/chakki-works/seqeval), both held
against seqeval 1.2.2 in the tests.

A word without a tag counts as O, superfluous tags do not count; all entities of a row without an answer are missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from ..answers import Answers
from ..model import Columns, Task
from ._tally import State, added
from ._tokens import tokens
from .token_accuracy import chance as chance

VERSION = 1
TASKS = ("sequence",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)

merge = added

Entity = tuple[str, int, int]
"""Its type, its first word and, excluded, its last."""

_OUTSIDE = ("O", "")
_MARKS = "BIES"


class Options(BaseModel):
    """How tags make entities."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scheme: Literal["conlleval", "IOB1", "IOB2", "BIOES"] = "conlleval"


OPTIONS = Options


def fields(options: Options) -> tuple[str, ...]:
    """None beside the tags."""
    return ()


def update(answers: Answers, truth: NDArray[Any], task: Task, columns: Columns, options: Options) -> State:
    """`right`, `named` and `true` entities, int64."""
    right = named = true = 0
    for given, expected in zip(answers.prediction, truth, strict=True):
        wanted = tokens(expected, task)
        said = [] if given is None else list(tokens(given, task)[: len(wanted)])
        there = set(entities(wanted, options.scheme))
        found = set(entities([*said, *["O"] * (len(wanted) - len(said))], options.scheme))
        right, named, true = right + len(there & found), named + len(found), true + len(there)
    return {"right": np.array(right), "named": np.array(named), "true": np.array(true)}


def compute(state: State, options: Options) -> float:
    """2 right / (true + named); NaN where there is no entity and none is named."""
    both = state["true"] + state["named"]
    return float(2 * state["right"] / both) if both else float("nan")


def entities(tags: Sequence[str], scheme: str = "conlleval") -> Iterator[Entity]:
    """The entities that the tags of a sentence mark, in order."""
    marks = [_parted(tag) for tag in tags]
    start: int | None = None
    for at, (before, now) in enumerate(pairwise([_OUTSIDE, *marks, _OUTSIDE])):
        joins = start is not None and _joins(before, now, scheme)
        if start is not None and not joins:
            if _ends(before, now, scheme):
                yield before[1], start, at
            start = None
        if not joins and _begins(before, now, scheme):
            start = at


def _parted(tag: str) -> tuple[str, str]:
    """The mark and the type of a tag; what is no mark of an entity is outside."""
    mark, kind = tag[:1], tag[2:] if tag[1:2] == "-" else tag[1:]
    return (mark, kind) if mark and mark in _MARKS else _OUTSIDE


def _joins(before: tuple[str, str], now: tuple[str, str], scheme: str) -> bool:
    """Whether a word goes on with the entity that the word before is in."""
    goes_on = "I" if scheme in ("IOB1", "IOB2") else "IE"
    return now[0] != "O" and now[0] in goes_on and before[0] not in "ES" and before[1] == now[1]


def _ends(before: tuple[str, str], now: tuple[str, str], scheme: str) -> bool:
    """Whether what ends before a word is an entity: in BIOES it must be closed; in IOB1 a B after a B of another type
    cannot be, and seqeval leaves out what stands before it."""
    if scheme == "IOB1":
        return not (before[0] == now[0] == "B" and before[1] != now[1])
    return scheme != "BIOES" or before[0] in "ES"


def _begins(before: tuple[str, str], now: tuple[str, str], scheme: str) -> bool:
    """Whether a word that goes on with no entity begins one."""
    if scheme == "IOB1":
        return now[0] == "I" or (now[0] == "B" and before[0] in "BI" and before[1] == now[1])
    return now[0] in {"conlleval": "BIES", "IOB2": "B", "BIOES": "BS"}[scheme]
