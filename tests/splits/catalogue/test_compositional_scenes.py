"""gCOG as text: an interpreter of its own reads every question and finds the same answer."""

from __future__ import annotations

import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import gcog
from hypothesis import given, settings
from hypothesis import strategies as st

ARGUMENTS = {"get_color": 1, "get_shape": 1}


def answer(question: str) -> str:
    tree, scene = question.split(" | ")
    objects = [(c, s, int(x), int(y)) for c, s, x, y in (item.split() for item in scene.split(" , "))]
    words = tree.split()

    def take() -> str:
        return words.pop(0)

    def node() -> str:
        name = take()
        if name == "if":
            condition = node()
            assert take() == "then"
            item = node()
            assert take() == "else"
            other = node()
            return {"true": item, "false": other}[condition]
        arguments = [take() for _ in range(ARGUMENTS.get(name, 2))]
        if name == "get_color":
            (result,) = {c for c, s, _, _ in objects if s == arguments[0]}
            return result
        if name == "get_shape":
            (result,) = {s for c, s, _, _ in objects if c == arguments[0]}
            return result
        here = [(x, y) for c, s, x, y in objects if [c, s] == arguments]
        if name == "exist":
            return str(bool(here)).lower()
        ((x, y),) = here
        if name == "go":
            return f"x{x}y{y}"
        sort, parity = name.split("_")
        number = x + y if sort == "sum" else x * y
        return str((number % 2 == 0) == (parity == "even")).lower()

    result = node()
    assert not words
    return result


def rows(**block):
    return gcog.rows(
        seed="t", blocks=[{"regime": "r", "rows": 60, "depth": 1, "distractors": [1, 5]} | block]
    ).to_pylist()


@settings(max_examples=12)
@given(depth=st.sampled_from([1, 3, 5, 7]), fewest=st.integers(0, 40), more=st.integers(0, 5))
def test_every_answer_is_what_the_question_says(depth, fewest, more):
    for row in rows(depth=depth, distractors=[fewest, min(fewest + more, 40)], rows=20):
        assert answer(row["question"]) == row["answer"]
        scene = row["question"].split(" | ")[1].split(" , ")
        assert len(scene) == row["objects"]
        assert len({tuple(item.split()[2:]) for item in scene}) == len(scene), "one object a cell"
        assert fewest <= row["distractors"] <= fewest + more


def test_questions_differ_and_depth_is_the_depth_of_the_tree():
    built = rows(depth=5, rows=200)
    assert len({row["question"] for row in built}) == 200
    assert {row["question"].count("if ") for row in built} == {3}


def test_answers_are_of_the_138_that_the_paper_has():
    cells = {f"x{x}y{y}" for x in range(10) for y in range(10)}
    possible = {"true", "false", *gcog.COLOURS, *gcog.LETTERS} | cells
    assert len(possible) == 138
    result = {row["answer"] for depth in (1, 3) for row in rows(depth=depth, rows=600)}
    assert result <= possible
    assert len(result) > 100


def test_conditions_and_leaves_are_kept_to_those_allowed():
    for row in rows(depth=3, conditions=["sum_odd"], leaves=["go", "get_shape"]):
        words = row["question"].split(" | ")[0].split()
        assert words[1] == "sum_odd"
        assert {word for word in words if "_" in word or word == "go"} <= {"sum_odd", "go", "get_shape"}


def test_what_exist_misses_mostly_has_a_colour_and_a_letter_of_the_scene():
    """A colour or a letter alone, looked for in the scene, does not tell."""
    missed = [row for row in rows(rows=1500) if row["question"].startswith("exist ") and row["answer"] == "false"]
    split = [(row["question"].split(" | ")[0].split(), row["question"].split(" | ")[1].split()) for row in missed]
    assert len(split) > 60
    assert all(requested[2] in scene for requested, scene in split)
    with_colour = sum(requested[1] in scene for requested, scene in split)
    assert 0.5 < with_colour / len(split) < 1


def pairs(pairing: str) -> set[tuple[str, str]]:
    """Operators and the letters of the objects they ask for."""
    result = set()
    for row in rows(pairing=pairing, rows=3000):
        words = row["question"].split(" | ")[0].split()
        result.add((words[0], row["answer"] if words[0] == "get_shape" else words[-1]))
    return result


def test_swapped_pairing_has_the_operators_and_letters_of_trained_pairing_but_no_pair_of_them():
    trained, swapped = pairs("trained"), pairs("swapped")
    assert {name for name, _ in trained} == set(gcog.OPERATORS)
    assert {name for name, _ in swapped} == {*gcog.OPERATORS} - {"get_shape"}
    assert {letter for _, letter in swapped} == set(gcog.LETTERS)
    assert not trained & swapped


def test_trained_pairing_gives_every_letter_as_an_answer():
    assert {letter for name, letter in pairs("trained") if name == "get_shape"} == set(gcog.LETTERS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"depth": 2},
        {"pairing": "other"},
        {"pairing": "trained", "depth": 3},
        {"conditions": ["go"]},
        {"leaves": ["jump"]},
    ],
)
def test_blocks_that_make_no_sense_are_refused(wrong):
    with pytest.raises(BadDefinition, match="gcog: r:"):
        rows(**wrong)
