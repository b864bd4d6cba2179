"""Operator trees over a scene of coloured letters, as text: a token version of gCOG (Ito et al. 2024, "On the
Generalization Capacity of Neural Networks during Generic Multimodal Reasoning", arXiv 2401.15030), reimplemented with a
seeded generator.

A scene is a set of objects, each with a colour, a letter and a cell of a 10 x 10 grid. A tree of depth 1 is one
operator; depth 3 is "if condition then leaf else leaf"; depths 5 and 7 nest a tree of depth 3 or 5 in both branches. A
target, which is an object that a tree refers to, shares neither colour nor letter with any other object of the scene,
so every answer is unique. An object that `exist` does not find has a letter of the scene and a colour of another object
or, sometimes, of none, so that neither alone gives the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_below, draw_bits
from ...core.errors import BadDefinition
from ._rows import count_candidates, make_counters, make_table, take_distinct

LETTERS = "abcdefghijklmnopqrstuvwxyz"
COLOURS = ("red", "green", "blue", "yellow", "pink", "orange", "purple", "brown", "grey", "white")
CONDITIONS = ("exist", "sum_even", "sum_odd", "product_even", "product_odd")
OPERATORS = (*CONDITIONS, "get_color", "get_shape", "go")

_SIDE = 10
_MOST_TARGETS = 4
"""The most targets that a tree may have; one further colour is not in the scene."""

_FIRST_GROUP = ("exist", "get_color", "sum_even", "product_even")
_FIRST_LETTERS = LETTERS[:13]


@dataclass(frozen=True)
class _Object:
    colour: str
    letter: str
    x: int
    y: int

    def __str__(self) -> str:
        return f"{self.colour} {self.letter} {self.x} {self.y}"


@dataclass
class _Choices:
    """Choices by a row's numbers in [0, 2^16), used one after the other."""

    numbers: Iterator[int]

    def of(self, options: tuple[Any, ...]) -> Any:
        return options[next(self.numbers) * len(options) >> 16]


def rows(*, seed: str, blocks: list[dict[str, Any]]) -> pa.Table:
    """The rows of each block: `regime` (its name), `rows`, `depth` (1, 3, 5 or 7), `distractors` (the least and the
    most objects besides the targets); optionally `conditions` and `leaves` (the operators allowed there) and, for
    depth 1, `pairing`: "trained" uses the operators exist, get_color, sum_even and product_even only with the letters
    a-m and the others with n-z, "swapped" the other way round. get_shape, whose answer is the letter, is used with all
    letters in "trained" and not used in "swapped", so that every answer of one also occurs in the other.

    Columns: `question` (tree, "|", scene), `answer` (a truth value, a colour, a letter or a cell "x3y4"), `depth`,
    `distractors`, `objects` (in the scene), `regime`.
    """
    records = [row for block in blocks for row in _make_block(f"{seed}/{block.get('regime', '')}", **block)]
    return make_table(("question", "answer", "depth", "distractors", "objects", "regime"), records)


def _make_block(
    stream: str,
    *,
    regime: str,
    rows: int,
    depth: int,
    distractors: list[int],
    conditions: list[str] | None = None,
    leaves: list[str] | None = None,
    pairing: str = "",
) -> list[tuple[str, str, int, int, int, str]]:
    """Make the rows of one block."""
    heads, ends = tuple(conditions or CONDITIONS), tuple(leaves or OPERATORS)
    if depth not in (1, 3, 5, 7) or pairing not in ("", "trained", "swapped") or (pairing and depth > 1):
        raise BadDefinition(f"gcog: {regime}: depth must be 1, 3, 5 or 7; pairing trained or swapped, for depth 1 only")
    if unknown := [name for name in heads if name not in CONDITIONS] + [name for name in ends if name not in OPERATORS]:
        raise BadDefinition(f"gcog: {regime}: unknown operator: {', '.join(unknown)}")
    if pairing == "swapped":
        ends = tuple(name for name in ends if name != "get_shape")
    drawn = count_candidates(rows)
    target_count = min(_MOST_TARGETS, 2 ** ((depth + 1) // 2) - 1)
    shuffles = {
        name: np.argsort(draw_bits(f"{stream}/{name}", make_counters(drawn * size)).reshape(drawn, size), kind="stable")
        for name, size in (("letters", len(LETTERS)), ("colours", len(COLOURS)), ("cells", _SIDE**2))
    }
    low, high = distractors
    counts = low + draw_below(f"{stream}/distractors", make_counters(drawn), high - low + 1)
    numbers = draw_below(f"{stream}/choices", make_counters(drawn * 128), 2**16).reshape(drawn, 128)

    def make_row(row: int) -> tuple[str, str, int, int, int, str]:
        choices = _Choices(iter(numbers[row].tolist()))
        letters = [LETTERS[i] for i in shuffles["letters"][row]]
        end = choices.of(ends)
        if pairing and end != "get_shape":
            first = (end in _FIRST_GROUP) == (pairing == "trained")
            letters.sort(key=lambda letter: (letter in _FIRST_LETTERS) != first)
        colours = [COLOURS[i] for i in shuffles["colours"][row]]
        scene = _make_scene(letters, colours, shuffles["cells"][row], target_count, int(counts[row]), choices)
        wrong = (*(thing.colour for thing in scene[target_count:]), colours[-1])
        if depth == 1:
            tree, answer = _make_operator(end, scene[:target_count], wrong, choices)
        else:
            tree, answer = _make_tree(depth, heads, ends, scene[:target_count], wrong, choices)
        shown = " , ".join(sorted(str(thing) for thing in scene))
        return f"{tree} | {shown}", answer, depth, int(counts[row]), len(scene), regime

    return take_distinct((make_row(row) for row in range(drawn)), rows, lambda row: row[0], f"gcog: {regime}")


def _make_scene(
    letters: list[str],
    colours: list[str],
    cells: NDArray[np.int64],
    target_count: int,
    distractors: int,
    choices: _Choices,
) -> list[_Object]:
    """Return the targets, then distractors of other letters and colours; the last colour is not used."""
    looks = list(zip(colours[:target_count], letters[:target_count], strict=True))
    others, hues = tuple(letters[_MOST_TARGETS:]), tuple(colours[_MOST_TARGETS:-1])
    looks += [(choices.of(hues), choices.of(others)) for _ in range(distractors)]
    return [
        _Object(colour, letter, int(cell) % _SIDE, int(cell) // _SIDE)
        for (colour, letter), cell in zip(looks, cells[: len(looks)], strict=True)
    ]


def _make_tree(
    depth: int,
    heads: tuple[str, ...],
    ends: tuple[str, ...],
    targets: list[_Object],
    wrong: tuple[str, ...],
    choices: _Choices,
) -> tuple[str, str]:
    """Make a tree and its answer; `wrong` are colours that no target has."""
    if depth == 1:
        return _make_operator(choices.of(ends), targets, wrong, choices)
    condition, holds = _make_operator(choices.of(heads), targets, wrong, choices)
    then_branch, if_true = _make_tree(depth - 2, heads, ends, targets, wrong, choices)
    else_branch, if_false = _make_tree(depth - 2, heads, ends, targets, wrong, choices)
    return f"if {condition} then {then_branch} else {else_branch}", if_true if holds == "true" else if_false


def _make_operator(name: str, targets: list[_Object], wrong: tuple[str, ...], choices: _Choices) -> tuple[str, str]:
    """Make one operator on one of the targets, and its answer."""
    thing = choices.of(tuple(targets))
    if name == "get_color":
        return f"get_color {thing.letter}", thing.colour
    if name == "get_shape":
        return f"get_shape {thing.colour}", thing.letter
    if name == "exist":
        exists = choices.of((True, False))
        colour = thing.colour if exists else choices.of(wrong)
        return f"exist {colour} {thing.letter}", "true" if exists else "false"
    text = f"{name} {thing.colour} {thing.letter}"
    if name == "go":
        return text, f"x{thing.x}y{thing.y}"
    number = thing.x + thing.y if name.startswith("sum") else thing.x * thing.y
    return text, "true" if (number % 2 == 0) == name.endswith("even") else "false"
