"""Mazes: trees of corridors, solved; and prefix sums of up to 512 bits."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import mazes
from hypothesis import given, settings
from hypothesis import strategies as st

ROWS = mazes.rows(seed="t", counts={"9": 120, "15": 30, "31": 4}).to_pylist()


def open_cells(lines: list[str]) -> set[tuple[int, int]]:
    return {(y, x) for y, line in enumerate(lines) for x, cell in enumerate(line) if cell != "#"}


def near(cell: tuple[int, int]) -> set[tuple[int, int]]:
    y, x = cell
    return {(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)}


def distances(cells: set[tuple[int, int]], start: tuple[int, int]) -> dict[tuple[int, int], int]:
    result, front = {start: 0}, [start]
    for cell in front:
        for other in sorted(near(cell) & cells):
            if other not in result:
                result[other] = result[cell] + 1
                front.append(other)
    return result


def test_every_maze_is_a_tree_over_all_its_rooms():
    for row in ROWS:
        cells = open_cells(row["maze"].split(" "))
        rooms = {(y, x) for y in range(0, row["size"], 2) for x in range(0, row["size"], 2)}
        assert rooms <= cells
        assert len(cells) == 2 * len(rooms) - 1, "a corridor fewer than rooms: no cycle"
        assert distances(cells, (0, 0)).keys() == cells, "and all joined"


def test_the_path_is_the_shortest_one_from_start_to_goal():
    for row in ROWS:
        lines, path = row["maze"].split(" "), row["path"].split(" ")
        cells = open_cells(lines)
        (start,), (goal,) = ([cell for cell in sorted(cells) if lines[cell[0]][cell[1]] == sign] for sign in "SG")
        marked = {(y, x) for y, line in enumerate(path) for x, cell in enumerate(line) if cell == "*"}
        assert {start, goal} <= marked <= cells
        steps = distances(cells, start)[goal]
        assert distances(marked, start)[goal] == steps == row["steps"] == len(marked) - 1
        assert set("".join(path)) == {"*", "_"}


def test_maze_and_path_have_one_layout():
    for row in ROWS:
        assert [len(line) for line in row["maze"].split(" ")] == [row["size"]] * row["size"]
        assert [len(line) for line in row["path"].split(" ")] == [row["size"]] * row["size"]


def test_mazes_of_a_size_are_different_and_as_many_as_asked_for():
    assert Counter(row["size"] for row in ROWS) == {9: 120, 15: 30, 31: 4}
    assert len({row["maze"] for row in ROWS}) == len(ROWS)


def test_search_goes_deep():
    dead_ends = [
        sum(len(near(cell) & cells) == 1 for cell in cells) / len(cells)
        for cells in (open_cells(row["maze"].split(" ")) for row in ROWS if row["size"] == 31)
    ]
    assert max(dead_ends) < 0.09, (
        "depth-first mazes have few dead ends; a random spanning tree has a third of its rooms"
    )


@settings(max_examples=20)
@given(size=st.integers(1, 5).map(lambda half: 2 * half + 1), seed=st.text("xyz", min_size=1, max_size=3))
def test_carving_opens_each_room_and_one_corridor_less(size, seed):
    is_open = mazes.carve_mazes(seed, size, 3)
    rooms = ((size + 1) // 2) ** 2
    assert is_open[:, ::2, ::2].all()
    assert (is_open.sum((1, 2)) == 2 * rooms - 1).all()
    assert not is_open[:, 1::2, 1::2].any()


def test_a_maze_does_not_depend_on_how_many_others_are_asked_for_of_other_sizes():
    alone = mazes.rows(seed="t", counts={"15": 30}).to_pylist()
    assert alone == [row for row in ROWS if row["size"] == 15]


@pytest.mark.parametrize(("size", "told"), [("8", "must be odd"), ("1", "must be odd"), ("3", "different mazes")])
def test_sizes_that_cannot_be_are_refused(size, told):
    with pytest.raises(BadDefinition, match=told):
        mazes.rows(seed="t", counts={size: 1000})


def test_solving_follows_the_shorter_of_two_ways():
    is_open = np.ones((1, 3, 5), bool)
    is_open[0, 1, 1:4] = False
    is_open[0, 2, 2] = False
    square = np.zeros((1, 5, 5), bool)
    square[:, :3] = is_open
    path, steps = mazes.solve_mazes(square, np.array([[2, 0]]), np.array([[2, 4]]))
    assert steps.tolist() == [8]
    assert path.sum() == 9
    assert path[0, 0].all()
