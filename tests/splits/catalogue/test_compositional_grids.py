"""Grids and pictures: every combination is there, and the drawing is what its factors say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import arc_grids, shapes

GRIDS = arc_grids.rows(seed="t", per_combination=6).to_pylist()
PICTURES = shapes.rows(seed="t", per_combination=2)


def array(text: str) -> np.ndarray:
    return np.array([[int(cell) for cell in row.split()] for row in text.split(" / ")])


def cells(grid: np.ndarray, colour: int) -> set[tuple[int, int]]:
    return {(int(y), int(x)) for y, x in np.argwhere(grid == colour)}


def test_every_combination_has_its_number_of_different_grids():
    count = Counter((r["shape"], r["colour"], r["neighbour"]) for r in GRIDS)
    assert len(count) == 125
    assert set(count.values()) == {6}
    assert len({r["grid"] for r in GRIDS}) == len(GRIDS)


def test_no_shape_is_another_one_turned_or_mirrored():
    forms = {}
    for name, mask in arc_grids.SHAPES.items():
        for side in (np.array(mask), np.array(mask)[:, ::-1]):
            for turn in range(4):
                result = np.argwhere(np.rot90(side, turn))
                forms.setdefault(tuple(map(tuple, result - result.min(0))), set()).add(name)
    assert all(len(names) == 1 for names in forms.values())


def boxes(row) -> list[tuple[int, int]]:
    """The places of the 3 x 3 box that the given object and its neighbour allow."""
    grid = array(row["grid"])
    given = cells(grid, int(row["colour"]))
    result = []
    for top in range(8):
        for left in range(8):
            inside = {(y - top, x - left) for y, x in given}
            if not all(0 <= y < 3 and 0 <= x < 3 for y, x in inside):
                continue
            box = np.zeros((3, 3), int)
            box[tuple(zip(*inside, strict=True))] = 1
            mask = np.array(arc_grids.SHAPES[row["shape"]])
            poses = [np.rot90(side, turn) for side in (mask, mask[:, ::-1]) for turn in range(4)]
            if not any((box == pose).all() for pose in poses):
                continue
            corners = [(top - 1, left - 1), (top - 1, left + 3), (top + 3, left - 1), (top + 3, left + 3)]
            marks = cells(grid, int(row["neighbour"])) if row["neighbour"] != "none" else set()
            if marks <= set(corners):
                result.append((top, left))
    return result


def test_results_move_turn_and_paint_as_the_indicators_say():
    turns = {
        "1": lambda y, x: (y, x),
        "2": lambda y, x: (y, 2 - x),
        "3": lambda y, x: (2 - y, x),
        "4": lambda y, x: (x, 2 - y),
        "5": lambda y, x: (2 - x, y),
    }
    moves = {"ell": (0, 0), "chair": (-1, 0), "flag": (1, 0), "hook": (0, -1), "tap": (0, 1)}
    paints = {"none": None, "6": 2, "7": 3, "8": 4, "9": 5}
    for row in GRIDS:
        grid, colour = array(row["grid"]), int(row["colour"])
        down, right = moves[row["shape"]]
        possible = []
        for top, left in boxes(row):
            after = np.where(grid == colour, 0, grid)
            for y, x in cells(grid, colour):
                turned_y, turned_x = turns[row["colour"]](y - top, x - left)
                after[top + turned_y + down, left + turned_x + right] = paints[row["neighbour"]] or colour
            possible.append(after)
        assert any((after == array(row["result"])).all() for after in possible), row


def test_active_counts_the_indicators_that_change_the_object():
    own = {("2", "6"), ("3", "7"), ("4", "8"), ("5", "9")}
    for row in GRIDS:
        paints = row["neighbour"] != "none" and (row["colour"], row["neighbour"]) not in own
        assert row["active"] == (row["shape"] != "ell") + (row["colour"] != "1") + paints
        assert (cells(array(row["result"]), int(row["colour"])) == set()) == paints
        assert row["active"] or row["grid"] == row["result"]


def test_more_grids_than_there_are_is_refused():
    with pytest.raises(BadDefinition, match="different grids"):
        arc_grids.rows(seed="t", per_combination=1000)


def pixels() -> np.ndarray:
    return np.array(PICTURES["picture"].to_pylist(), np.int64).reshape(-1, 24, 24, 3)


def test_pictures_are_all_different_and_every_combination_is_there():
    assert len({picture.tobytes() for picture in pixels()}) == PICTURES.num_rows == 750
    factors = Counter(zip(*(PICTURES[name].to_pylist() for name in ("shape", "colour", "size", "place")), strict=True))
    assert len(factors) == 375
    assert set(factors.values()) == {2}


def test_a_shape_has_its_colour_and_the_ground_is_dark():
    for picture, shape, colour in zip(
        pixels(), PICTURES["shape_class"].to_pylist(), PICTURES["colour"].to_pylist(), strict=True
    ):
        bright = picture.max(axis=2) >= 100
        paint = np.array(shapes.COLOURS[colour])
        assert (np.abs(picture[bright] - paint) <= 16).all(), (shape, colour)
        assert (picture[~bright] < 32).all()


def test_masks_are_the_figures_they_are_named_for():
    centre = np.array([[12, 12]])

    def covers(name: str, y: int, x: int) -> bool:
        return bool(
            shapes.make_shape_mask(np.array([shapes.SHAPES.index(name)]), np.array([6]), centre)[0, 12 + y, 12 + x]
        )

    for y in range(-8, 9):
        for x in range(-8, 9):
            far = y * y + x * x
            assert covers("disc", y, x) == (far <= 36)
            assert covers("ring", y, x) == (9 <= far <= 36)
            assert covers("square", y, x) == (max(abs(y), abs(x)) <= 5)
            assert covers("cross", y, x) == (min(abs(y), abs(x)) <= 2 and max(abs(y), abs(x)) <= 6)
            assert covers("triangle", y, x) == (-6 <= y <= 6 and abs(x) <= (y + 6) / 2)


def test_pictures_can_be_told_apart_by_shape_and_size():
    areas = {
        (shape, size): int(shapes.make_shape_mask(np.array([shape]), np.array([size]), np.array([[12, 12]])).sum())
        for shape in range(5)
        for size in (4, 5, 6)
    }
    for shape in range(5):
        assert areas[shape, 4] < areas[shape, 5] < areas[shape, 6]
