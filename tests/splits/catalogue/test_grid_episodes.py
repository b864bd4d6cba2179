"""Episodes of grids: three meanings of three indicators explain every example, and a second implementation agrees."""

from itertools import permutations

import numpy as np
import pytest
from farshift.loaders.generators.arc_episodes import NEIGHBOURS, PRIMITIVES, rows
from farshift.loaders.generators.arc_grids import SHAPES

CELLS = [
    {(y, x) for y, x in np.argwhere(np.rot90(np.array(mask)[:, ::side], turn)).tolist()}
    for mask in SHAPES.values()
    for side in (1, -1)
    for turn in range(4)
]


def look(words):
    """What a grid shows: the object's shape, colour and the corner of its box; its neighbour."""
    grid = np.array([[int(digit) for digit in word] for word in words])
    beside = [(int(grid[y, x]), (y, x)) for y, x in np.argwhere(np.isin(grid, NEIGHBOURS)).tolist()]
    own = {(y, x) for y, x in np.argwhere((grid > 0) & ~np.isin(grid, NEIGHBOURS)).tolist()}
    for number, cells in enumerate(CELLS):
        for top, left in np.ndindex(8, 8):
            if {(y + top, x + left) for y, x in cells} == own:
                return number // 8, int(grid[min(own)]), (top + 1, left + 1), own, beside
    raise AssertionError(words)


def act(primitive, cells, colour, centre):
    """A transformation of cells about a centre, in coordinates."""
    y, x = centre
    moves = {
        "down": lambda a, b: (a + 1, b),
        "right": lambda a, b: (a, b + 1),
        "mirror_left_right": lambda a, b: (a, 2 * x - b),
        "mirror_up_down": lambda a, b: (2 * y - a, b),
        "turn_clockwise": lambda a, b: (y + b - x, x - a + y),
        "turn_counter": lambda a, b: (y - b + x, x + a - y),
    }
    if primitive.startswith("paint"):
        return cells, int(primitive[-1]), centre
    if primitive.startswith("grow"):
        up, left = (1, 0) if primitive == "grow_up" else (0, 1)
        return cells | {(a - up, b - left) for a, b in cells}, colour, centre
    centre = (y + (primitive == "down"), x + (primitive == "right"))
    return {moves[primitive](a, b) for a, b in cells}, colour, centre


def predict(seen, primitives):
    _, colour, centre, cells, beside = seen
    for primitive in primitives:
        cells, colour, centre = act(primitive, cells, colour, centre)
    grid = np.zeros((10, 10), int)
    for value, at in beside:
        grid[at] = value
    for at in cells:
        grid[at] = colour
    return ["".join(map(str, line)) for line in grid.tolist()]


@pytest.mark.parametrize(("form", "examples"), [("systematicity", 2), ("few_shot", 3)])
def test_the_study_examples_and_the_answer_follow_from_three_meanings(form, examples):
    table = rows(seed="t", episodes=40, form=form, examples=examples)
    for row in table.to_pylist():
        *study, query = [part.split(" out ") for part in f" {row['question']}".split(" in ")[1:]]
        pairs = [(look(before.split()), after.split()) for before, after in study]
        question_grid = look(query[0].split())
        present = [
            (
                seen[0] == question_grid[0],
                seen[1] == question_grid[1],
                [value for value, _ in seen[4]] == [question_grid[4][0][0]],
            )
            for seen, _ in pairs
        ]
        kinds = {"systematicity": {(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)}}
        assert {kind: present.count(kind) for kind in present} == dict.fromkeys(kinds.get(form, {(1, 1, 1)}), examples)
        meanings = [
            meaning
            for meaning in permutations((row["first"], row["second"], row["third"]))
            if all(
                predict(seen, [one for one, there in zip(meaning, kind, strict=True) if there]) == after
                for (seen, after), kind in zip(pairs, present, strict=True)
            )
        ]
        assert meanings
        assert row["answer"].split() in [predict(question_grid, meaning) for meaning in meanings]


def test_every_triple_of_the_ten_transformations_occurs():
    table = rows(seed="t", episodes=1500, examples=1)
    assert len(set(zip(*(table[name].to_pylist() for name in ("first", "second", "third")), strict=True))) == 120
    assert len(PRIMITIVES) == 10
