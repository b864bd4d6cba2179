"""Puzzles of several levels of difficulty, made by the package reasoning-gym as the user has installed it.

The package (Stojanovski et al. 2025, arXiv 2505.24760) has procedural data sets with parameters of difficulty; a source
names data sets and, level by level, their parameters. Each level's seed is drawn by name, all questions of a data set
differ, and the pinned digest of the rows says whether the version at hand makes the rows that were published.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.draws import draw_below
from ...core.errors import BadData, BadDefinition, MissingGeneratorPackage, get_first_line
from ._columns import make_table
from ._sampling import take_distinct

if TYPE_CHECKING:
    import pyarrow as pa

REQUIRES = ("reasoning_gym", "puzzles")
"""The module that this generator imports when it is used, and the extra that brings it."""

_DISTRIBUTION = "reasoning-gym"
_DRAWS_PER_PUZZLE = 8
"""Puzzles made for each that is wanted, before a level is held to have no more different ones."""


def rows(*, seed: str, version: str, each: list[int], tasks: list[dict[str, Any]]) -> pa.Table:
    """`each[i]` puzzles of level i + 1, for each of `tasks`: `task` (the name of a data set), `category`, `levels` (the
    parameters of the data set at each level) and, if some are to be passed over, `without`: a text that no question
    may hold. Columns: `question`, `answer` (text), `task`, `category` and `level`.

    `version` is the one that made the pinned rows; another is asked just the same. Raises `MissingGeneratorPackage`
    without the package, and `BadData` where the version at hand has no such data set or parameters.
    """
    try:
        from reasoning_gym import create_dataset
    except ImportError as error:
        raise MissingGeneratorPackage("making the puzzles of reasoning_gym", REQUIRES[1]) from error
    records: list[tuple[str, str, str, str, int]] = []
    for task in tasks:
        name, category, levels = task["task"], task["category"], task["levels"]
        if len(levels) != len(each):
            raise BadDefinition(f"reasoning_gym: {name} has {len(levels)} levels, and `each` {len(each)}")
        known_questions: set[str] = set()
        for level, (count, parameters) in enumerate(zip(each, levels, strict=True), start=1):
            stream = f"{seed}/{name}/{level}"
            # The package draws row i by this seed + i: seeds lie far apart.
            first = int(draw_below(stream, np.zeros(1, np.uint64), 2**31)[0])
            try:
                puzzles = create_dataset(name, seed=first, size=_DRAWS_PER_PUZZLE * count, **parameters)
                new = (pair for pair in _iterate_pairs(puzzles, task.get("without")) if pair[0] not in known_questions)
                pairs = take_distinct(new, count, lambda pair: pair[0], f"reasoning_gym: {name}, level {level}")
            except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
                why = f"{name}, level {level}: {get_first_line(error)}"
                raise BadData(f"{_describe_package()} cannot make {why}; the pinned rows are of {version}") from error
            known_questions.update(question for question, _ in pairs)
            records += [(question, answer, name, category, level) for question, answer in pairs]
    return make_table(("question", "answer", "task", "category", "level"), records)


def maker(*, version: str, **_: Any) -> str:
    """Who made the rows of now, and who the pinned ones: what is said where they differ."""
    return f"{_describe_package()} made them, the pinned rows are of {version}"


def _describe_package() -> str:
    return f"{_DISTRIBUTION} {version_of(_DISTRIBUTION)}"


def _iterate_pairs(puzzles: Any, without: str | None) -> Iterator[tuple[str, str]]:
    """(question, answer) of each puzzle of a data set whose question does not hold `without`. One whose answer is an
    empty text is passed over too: nobody could tell it from none. `ValueError` for an answer that is no text."""
    for puzzle in puzzles:
        question, answer = puzzle["question"], puzzle["answer"]
        if not (isinstance(question, str) and isinstance(answer, str)):
            raise ValueError("a puzzle without an answer")
        if answer.strip() and (without is None or without not in question):
            yield question, answer
