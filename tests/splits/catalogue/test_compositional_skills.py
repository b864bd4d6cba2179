"""Skills in sequence: answers follow the skills' definitions, every sequence is there."""

from __future__ import annotations

from collections import Counter, deque
from itertools import product

import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import skills

ROWS = skills.rows(seed="t", shortest=3, longest=6, counts={"1": 20, "2": 4}).to_pylist()


def applied(name: str, letters: list[str]) -> list[str]:
    """The skills once more, on lists."""
    turned = deque(letters)
    match name:
        case "reverse":
            turned.reverse()
        case "rotate":
            turned.rotate(-1)
        case "sort":
            turned = deque(sorted(letters))
        case "swap":
            turned[0], turned[-1] = turned[-1], turned[0]
        case "echo":
            turned.append(letters[-1])
        case "drop":
            turned.popleft()
            turned = turned or deque(letters)
        case "next":
            turned = deque(chr((ord(letter) - ord("a") + 1) % 26 + ord("a")) for letter in letters)
        case "odd":
            turned = deque(letter for position, letter in enumerate(letters, 1) if position % 2)
        case _:
            raise AssertionError(name)
    return list(turned)


def test_an_answer_is_the_skills_applied_from_first_to_last():
    for row in ROWS:
        names, letters = (side.split() for side in row["question"].split(" : "))
        assert " ".join(names) == row["skills"]
        assert len(names) == row["size"]
        for name in names:
            letters = applied(name, letters)
        assert row["answer"] == " ".join(letters)


def test_every_sequence_of_skills_has_its_rows_and_no_question_stands_twice():
    count = Counter(row["skills"] for row in ROWS)
    assert {name: count.pop(name) for name in skills.SKILLS} == dict.fromkeys(skills.SKILLS, 20)
    assert count == {" ".join(pair): 4 for pair in product(skills.SKILLS, repeat=2)}
    assert len({row["question"] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("name", skills.SKILLS)
def test_skills_take_a_single_letter_and_leave_one(name):
    assert skills.SKILLS[name]("z") == {"echo": "zz", "next": "a"}.get(name, "z")


def test_no_two_skills_do_the_same():
    for item, other in product(skills.SKILLS, repeat=2):
        if item != other:
            assert any(skills.SKILLS[item](text) != skills.SKILLS[other](text) for text in ("cab", "dbca", "bca"))


def test_more_different_rows_than_there_are_is_refused():
    with pytest.raises(BadDefinition, match="different rows"):
        skills.rows(seed="t", shortest=1, longest=1, counts={"1": 27})
