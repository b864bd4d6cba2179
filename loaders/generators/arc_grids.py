"""Small grids with one object, whose shape, colour and neighbour each indicate a transformation: the idea of
Compositional-ARC (Mondorf et al. 2025, arXiv 2504.01445), with one fixed meaning of each indicator instead of study
examples.

The object fills part of a 3 x 3 box. Its shape determines how the box moves (ell: not at all), its colour how the
object is turned within its box (colour 1: not at all), and the neighbour, a single cell at a corner of the box, the new
colour of the object (no neighbour: unchanged). The three depend only on the original object, so their order does not
matter. The neighbour stays, and is covered by the object where they overlap. A neighbour that paints the object's own
colour has no effect.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from ._rows import find_distinct_rows, format_grids, make_counters, select_words

Grids = NDArray[np.uint8]

SHAPES: dict[str, tuple[tuple[int, int, int], ...]] = {
    "ell": ((1, 1, 1), (0, 0, 1), (0, 0, 0)),
    "chair": ((1, 0, 0), (1, 1, 0), (0, 1, 1)),
    "flag": ((1, 1, 0), (1, 1, 0), (1, 0, 0)),
    "hook": ((1, 1, 1), (1, 0, 1), (0, 0, 1)),
    "tap": ((0, 1, 1), (1, 1, 0), (0, 1, 0)),
}
"""Shapes that differ under all rotations and reflections; each indicates a move, in the order of `MOVES`."""

MOVES = {"ell": (0, 0), "chair": (-1, 0), "flag": (1, 0), "hook": (0, -1), "tap": (0, 1)}
"""Rows down and columns right that a shape moves by."""

COLOURS = ("1", "2", "3", "4", "5")
NEIGHBOURS = ("none", "6", "7", "8", "9")
_PAINTS = (0, 2, 3, 4, 5)
"""The colour that each neighbour paints; 0 keeps the object's own."""

_SIDE = 10
_BOX = 3


def rows(*, seed: str, per_combination: int) -> pa.Table:
    """`per_combination` different grids of each of the 125 combinations. Columns: `grid` and `result` (10 rows of 10
    digits, "/" between the rows and spaces between all; 0 is empty), `shape`, `colour`, `neighbour` (the indicators, as
    text), `active` (how many of the three change the object, 0 to 3)."""
    combinations = np.argwhere(np.ones((len(SHAPES), len(COLOURS), len(NEIGHBOURS)), bool))
    given, results, which = [], [], []
    for shape, colour, neighbour in combinations.tolist():
        name = f"{list(SHAPES)[shape]}/{COLOURS[colour]}/{NEIGHBOURS[neighbour]}"
        before, after = _make_pairs(f"{seed}/{name}", shape, colour, neighbour)
        indices = find_distinct_rows(before.reshape(len(before), -1), per_combination)
        if len(indices) < per_combination:
            raise BadDefinition(
                f"arc_grids: only {len(indices)} different grids of {name}, but {per_combination} are required"
            )
        given.append(before[indices])
        results.append(after[indices])
        which += [(shape, colour, neighbour)] * per_combination
    index = np.array(which)
    return pa.table(
        {
            "grid": format_grids(np.concatenate(given) + np.uint8(ord("0")), " ", " / "),
            "result": format_grids(np.concatenate(results) + np.uint8(ord("0")), " ", " / "),
            "shape": select_words(list(SHAPES), index[:, 0]),
            "colour": select_words(COLOURS, index[:, 1]),
            "neighbour": select_words(NEIGHBOURS, index[:, 2]),
            "active": (index[:, :2] > 0).sum(1) + _is_repainted(index[:, 1], index[:, 2]),
        }
    )


def _is_repainted(colour: NDArray[np.int64], neighbour: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the neighbour changes the object's colour; both are given as indices."""
    paint = np.array(_PAINTS)[neighbour]
    repaints: NDArray[np.bool_] = (paint > 0) & (paint != colour + 1)
    return repaints


def _make_pairs(stream: str, shape: int, colour: int, neighbour: int) -> tuple[Grids, Grids]:
    """Return all grids of one combination in drawn order, before and after, each of shape (n, 10, 10)."""
    mask = np.array(list(SHAPES.values())[shape], np.uint8)
    poses = np.stack([np.rot90(side, turn) for side in (mask, mask[:, ::-1]) for turn in range(4)])
    # One cell from every edge, so that moves by one and the neighbour at the box's corner stay inside.
    places = _SIDE - _BOX - 1
    every = np.indices((len(poses), places, places, 4)).reshape(4, -1)
    pose, top, left, corner = every[:, draw_permutation(stream, make_counters(every.shape[1]))]
    top, left = top + 1, left + 1

    before, after = np.zeros((2, len(pose), _SIDE, _SIDE), np.uint8)
    if neighbour:
        at = (np.arange(len(pose)), top + np.where(corner < 2, -1, _BOX), left + np.where(corner % 2 == 0, -1, _BOX))
        before[at] = after[at] = int(NEIGHBOURS[neighbour])
    down, right = list(MOVES.values())[shape]
    _paint_boxes(before, poses[pose], top, left, colour + 1)
    _paint_boxes(after, turn_boxes(poses[pose], colour), top + down, left + right, _PAINTS[neighbour] or colour + 1)
    return before, after


def turn_boxes(boxes: Grids, colour: int) -> Grids:
    """Turn boxes (n, 3, 3) according to the colour: unchanged, mirrored left-right, flipped upside down, rotated
    clockwise, rotated counter-clockwise."""
    turns = (
        boxes,
        boxes[:, :, ::-1],
        boxes[:, ::-1],
        np.rot90(boxes, -1, (1, 2)),
        np.rot90(boxes, 1, (1, 2)),
    )
    return turns[colour]


def _paint_boxes(grids: Grids, boxes: Grids, top: NDArray[np.int64], left: NDArray[np.int64], colour: int) -> None:
    """Paint the boxes' cells into the grids."""
    row, y, x = np.nonzero(boxes)
    grids[row, top[row] + y, left[row] + x] = colour
