"""Episodes over small grids whose study examples show what the indicators mean, after Compositional-ARC (Mondorf, Zhou,
Riedler and Plank 2025, arXiv 2504.01445): three of its ten transformations are indicated by the object's shape, its
colour and a cell beside it, another three in each episode. In the released code the three are of different kinds and
turns are about a corner of the box; here any three may meet.

A grid has one object in a 3 x 3 box, and perhaps the neighbour, a cell at a corner of the box. The transformations of
the indicators that are present act on the object in the order shape, colour, neighbour: it moves down or right by one
cell; it is mirrored or turned about its box's centre; it is painted 1 or 2; or each of its cells also fills the cell
above it or left of it. The neighbour stays, and is covered where the object overlaps it. Shapes, placement, order and
draws are our own.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_below, draw_permutation
from ._rows import make_counters
from .arc_grids import SHAPES, Grids

PRIMITIVES = (
    "down",
    "right",
    "mirror_left_right",
    "mirror_up_down",
    "turn_clockwise",
    "turn_counter",
    "paint_1",
    "paint_2",
    "grow_up",
    "grow_left",
)
COLOURS = (3, 4, 5)
NEIGHBOURS = (6, 7, 8, 9)
INDICATORS = ("shape", "colour", "neighbour")

_SIDE = 10
_FRAME = 7
"""The side of the frame around an object's box: two cells on each side, since an object grows at most twice."""
_PLACES = _SIDE - _FRAME
"""Frames start in the first rows and columns, so that a move by one cell stays inside."""

_Kinds = tuple[str, ...]


def rows(*, seed: str, episodes: int, form: str = "systematicity", examples: int = 2) -> pa.Table:
    """One row for each episode. Columns: `question` (study examples and the query, "in" before a grid and "out" before
    what it becomes; a grid is 10 words of 10 digits, 0 is empty), `answer` (the grid that the query becomes), `first`,
    `second` and `third` (the three transformations in alphabetical order).

    In the query all three indicators are present. The study examples, in drawn order, are `examples` of each indicator
    alone and of each pair of indicators if `form` is "systematicity", or `examples` of all three if it is "few_shot".
    """
    shown: dict[str, list[_Kinds]] = {
        "systematicity": [kinds for size in (1, 2) for kinds in combinations(INDICATORS, size)],
        "few_shot": [INDICATORS],
    }
    study = [kinds for kinds in shown[form] for _ in range(examples)]
    table: dict[str, list[str]] = {name: [] for name in ("question", "answer", "first", "second", "third")}
    triples = list(combinations(sorted(PRIMITIVES), 3))
    which = draw_below(f"{seed}/triple", make_counters(episodes), len(triples)).tolist()
    for episode, triple in enumerate(which):
        stream = f"{seed}/{episode}"
        order = draw_permutation(f"{stream}/order", make_counters(3)).tolist()
        meaning = {kind: triples[triple][position] for kind, position in zip(INDICATORS, order, strict=True)}
        pairs = _make_examples(stream, meaning, [*study, INDICATORS])
        words = [["in", *_format_rows(before), "out", *_format_rows(after)] for before, after in pairs]
        shuffled = draw_permutation(f"{stream}/study", make_counters(len(study))).tolist()
        words = [*(words[position] for position in shuffled), words[-1][: _SIDE + 1]]
        table["question"].append(" ".join(word for example in words for word in example))
        table["answer"].append(" ".join(_format_rows(pairs[-1][1])))
        for field, primitive in zip(("first", "second", "third"), triples[triple], strict=True):
            table[field].append(primitive)
    return pa.table(table)


def _make_examples(stream: str, meaning: dict[str, str], present: list[_Kinds]) -> list[tuple[Grids, Grids]]:
    """Return a grid before and after for each set of present indicators."""
    shapes, count = list(SHAPES.values()), len(present)
    own_shape, own_colour, own_neighbour = (
        int(draw_below(f"{stream}/{kind}", make_counters(1), bound)[0])
        for kind, bound in zip(INDICATORS, (len(shapes), len(COLOURS), len(NEIGHBOURS)), strict=True)
    )
    # Another one than the own: so many further on, around the end.
    other_shape = (own_shape + 1 + draw_below(f"{stream}/other", make_counters(count), len(shapes) - 1)) % len(shapes)
    other_colour = (own_colour + 1 + draw_below(f"{stream}/hue", make_counters(count), len(COLOURS) - 1)) % len(COLOURS)
    positions = draw_below(f"{stream}/place", make_counters(count), _PLACES * _PLACES * 4 * 8).tolist()
    examples = []
    for number, (kinds, position) in enumerate(zip(present, positions, strict=True)):
        shape = own_shape if "shape" in kinds else int(other_shape[number])
        colour = COLOURS[own_colour if "colour" in kinds else int(other_colour[number])]
        position, corner = divmod(position, 4)
        position, pose = divmod(position, 8)
        box = np.rot90(np.array(shapes[shape], np.uint8)[:, :: -1 if pose >= 4 else 1], pose % 4)
        frame = np.zeros((_FRAME, _FRAME), np.uint8)
        frame[2:5, 2:5] = box * np.uint8(colour)
        top, left = divmod(position, _PLACES)
        background = np.zeros((_SIDE, _SIDE), np.uint8)
        if "neighbour" in kinds:
            background[top + (1 if corner < 2 else 5), left + (1 if corner % 2 else 5)] = NEIGHBOURS[own_neighbour]
        down, right, changed = transform_frame(frame, [meaning[kind] for kind in kinds])
        examples.append(
            (_lay_frame(background, frame, top, left), _lay_frame(background, changed, top + down, left + right))
        )
    return examples


def transform_frame(frame: Grids, primitives: list[str]) -> tuple[int, int, Grids]:
    """Apply transformations in order to an object in a square frame: how far it moves down and right, and the frame."""
    down = right = 0
    for primitive in primitives:
        match primitive:
            case "down":
                down += 1
            case "right":
                right += 1
            case "mirror_left_right":
                frame = frame[:, ::-1]
            case "mirror_up_down":
                frame = frame[::-1]
            case "turn_clockwise":
                frame = np.rot90(frame, -1)
            case "turn_counter":
                frame = np.rot90(frame)
            case "paint_1" | "paint_2":
                frame = (frame > 0) * np.uint8(primitive[-1])
            case "grow_up":
                frame = np.maximum(frame, np.roll(frame, -1, 0))
            case _:
                frame = np.maximum(frame, np.roll(frame, -1, 1))
    return down, right, frame


def _lay_frame(background: Grids, frame: Grids, top: int, left: int) -> Grids:
    grid = background.copy()
    y, x = np.nonzero(frame)
    grid[top + y, left + x] = frame[y, x]
    return grid


def _format_rows(grid: NDArray[np.uint8]) -> list[str]:
    return ["".join(map(str, line)) for line in grid.tolist()]
