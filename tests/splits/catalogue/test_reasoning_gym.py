"""Puzzles that the user's own reasoning-gym makes: the pinned ones or none, right answers, harder level by level."""

from __future__ import annotations

import re
import sys
from collections import Counter
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.core.errors import BadData, MissingExtra, Unavailable
from farshift.leaderboard.publish.examples import explain_refusal
from farshift.loaders.acquire.source import find_source
from farshift.loaders.freezing.verify import verify_manifest
from farshift.loaders.generators import reasoning_gym
from farshift.loaders.listing import has_local_rows
from farshift.splits.catalogue import find_manifest, list_manifests
from farshift.splits.rules import grades
from puzzle_solvers import SOLVERS, base_and_value

SOURCE = find_source("reasoning_gym")
OPTIONS = SOURCE.definition.distributions[0].options
TASKS = [task["task"] for task in OPTIONS["tasks"]]
LEVELS = range(1, 6)
FEW = 30
"""Puzzles of each kind and level in tests that are quick: the first of those that are pinned."""

with_puzzles = pytest.mark.skipif(find_spec("reasoning_gym") is None, reason="farshift[puzzles] is not installed")


def made(each):
    return reasoning_gym.rows(**OPTIONS | {"each": each}).to_pylist()


@pytest.fixture(scope="module")
def few():
    return made([FEW] * len(LEVELS))


@with_puzzles
@pytest.mark.parametrize("task", sorted(SOLVERS))
def test_an_answer_is_what_another_solver_finds(few, task):
    rows = [row for row in few if row["task"] == task]
    assert len(rows) == FEW * len(LEVELS)
    assert [row["answer"] for row in rows] == [SOLVERS[task](row["question"]) for row in rows]


def numbers(text):
    return [int(number) for number in re.findall(r"\d+", text)]


SIZES = {
    "ab": lambda row: len(re.search(r"program:\n\n(.+)\n", row["question"])[1].split()),
    "base_conversion": lambda row: base_and_value(row["question"])[0],
    "basic_arithmetic": lambda row: len(numbers(row["question"])),
    "binary_matrix": lambda row: len(row["answer"].splitlines()),
    "course_schedule": lambda row: numbers(row["question"])[0],
    "dice": lambda row: row["question"].split("What")[0].count("1d"),
    "knights_knaves": lambda row: len(row["question"]),
    "lcm": lambda row: int(row["answer"]),
    "maze": lambda row: int(row["answer"]),
    "mini_sudoku": lambda row: row["question"].count("_"),
    "prime_factorization": lambda row: numbers(row["question"])[0],
    "rotten_oranges": lambda row: len(row["question"]),
    "simple_equations": lambda row: sum(map(float, numbers(row["question"]))),
    "simple_geometry": lambda row: row["question"].count("°"),
    "string_manipulation": lambda row: len(row["question"].strip().splitlines()[-1]),
}  # fmt: skip
"""What makes a puzzle of each kind hard, read from it."""


@with_puzzles
@pytest.mark.parametrize("task", TASKS)
def test_puzzles_grow_from_level_to_level(few, task):
    sizes = {
        level: [SIZES[task](row) for row in few if (row["task"], row["level"]) == (task, level)] for level in LEVELS
    }
    means = [float(np.mean(sizes[level])) for level in LEVELS]
    assert means == sorted(set(means))


@with_puzzles
def test_no_question_is_asked_twice_and_none_at_two_levels(few):
    assert len({row["question"] for row in few}) == len(few) == FEW * len(LEVELS) * len(TASKS)
    # Level 1 of kinds with few different puzzles would overlap with itself, were repetitions kept.
    again = {row["question"] for row in made([2 * FEW, *[FEW] * 4])}
    assert {row["question"] for row in few if row["level"] == 1} <= again


@with_puzzles
def test_puzzles_that_any_answer_solves_are_passed_over(few):
    assert {task["task"] for task in OPTIONS["tasks"] if task.get("without") == ": 0 = 0"} == {"simple_equations"}
    assert all(row["answer"].strip() and ": 0 = 0" not in row["question"] for row in few)


@with_puzzles
def test_another_seed_gives_other_puzzles_of_the_same_kinds(few):
    others = reasoning_gym.rows(**OPTIONS | {"each": [5] * 5, "seed": "another"})
    assert set(others["task"].to_pylist()) == set(TASKS)
    long = {row["question"] for row in few if len(row["question"]) > 800}
    assert not long & set(others["question"].to_pylist())


@with_puzzles
@pytest.mark.slow
def test_the_package_makes_the_pinned_rows_with_right_answers(few):
    rows = SOURCE.table().to_pylist()  # held to the pinned digest
    assert len(rows) == SOURCE.definition.rows == len({row["question"] for row in rows})
    solved = [row for row in rows if row["task"] in SOLVERS]
    assert [row["answer"] for row in solved] == [SOLVERS[row["task"]](row["question"]) for row in solved]
    counts = Counter((row["task"], row["level"]) for row in rows)
    assert counts == {(task, level): OPTIONS["each"][level - 1] for task in TASKS for level in LEVELS}
    questions = {row["question"] for row in rows}
    assert {row["question"] for row in few if row["level"] == 1} <= questions


def test_the_splits_are_one_of_all_kinds_and_one_of_each():
    result = {item.name: item.definition for item in list_manifests() if item.definition.source.name == "reasoning_gym"}
    assert set(result) == {"reasoning_gym/easy_to_hard", *(f"reasoning_gym/{task}" for task in TASKS)}
    parts = {part: pin.rows for part, pin in result.pop("reasoning_gym/easy_to_hard").parts.items()}
    assert parts == {"train": 21750, "id_test": 2250, "ood_val": 2250, "ood_test": 4500}
    for split in result.values():
        counts = {part: pin.rows for part, pin in split.parts.items()}
        assert counts == {"train": 1450, "id_test": 150, "ood_val": 150, "ood_test": 300}


def test_kinds_are_groups_where_the_rule_names_their_field():
    table = pa.table(
        {"row_id": pa.array(range(6), pa.uint64()), "level": [1, 1, 2, 3, 4, 5], "task": ["a", "b", "a", "b", "a", "b"]}
    )
    requested = {"field": "level", "easy_at_most": 2, "hard_at_least": 4, "id_test": 1, "seed": "t"}
    result = grades.drawn(table, **requested, group="task")
    assert result.group.tolist() == ["a", "b", "a", "b", "a", "b"]
    assert result.part.tolist()[3:] == ["ood_val", "ood_test", "ood_test"]
    assert grades.drawn(table, **requested).group is None


def test_without_the_package_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    line = r"^generating the puzzles of reasoning_gym needs an optional dependency: pip install 'farshift\[puzzles\]'$"
    with pytest.raises(MissingExtra, match=line):
        SOURCE.build()
    with pytest.raises(Unavailable, match=line):  # where data cannot be had, as without a network, nothing else stops
        SOURCE.build()
    assert (SOURCE.extra, SOURCE.lacks) == ("puzzles", "puzzles")
    assert find_source("scan").extra == ""


def test_without_the_package_splits_are_unavailable_not_wrong(monkeypatch, cache):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    manifest = find_manifest("reasoning_gym/maze")
    assert not has_local_rows(manifest)
    result = verify_manifest(manifest)
    assert (result.state, "farshift[puzzles]" in result.why) == ("unavailable", True)


def test_no_page_depends_on_whether_the_package_is_there():
    assert "farshift[puzzles]" in explain_refusal(find_benchmark("reasoning_gym/maze"), SOURCE)


def of_version(monkeypatch, version, create_dataset):
    monkeypatch.setitem(sys.modules, "reasoning_gym", SimpleNamespace(create_dataset=create_dataset))
    monkeypatch.setattr(reasoning_gym, "version_of", lambda name: version)


def test_another_version_that_makes_other_puzzles_is_refused_and_named(monkeypatch):
    def others(name, seed, size, **parameters):
        return ({"question": f"{name} {seed + row}", "answer": "1"} for row in range(size))

    of_version(monkeypatch, "9.9.0", others)
    with pytest.raises(Unavailable) as caught:
        SOURCE.build()
    output = str(caught.value)
    assert re.fullmatch(
        r"source reasoning_gym: reasoning-gym: gives 30750 rows of digest \w{12}\.\., not 30750 of the pinned one; "
        r"reasoning-gym 9\.9\.0 generated them, the pinned rows are from 0\.1\.25",
        output,
    )


@pytest.mark.parametrize(
    ("error", "why"),
    [(TypeError("unexpected keyword argument 'max_terms'"), "unexpected keyword"), (ValueError("Dataset"), "Dataset")],
)
def test_a_version_that_knows_no_such_puzzles_is_refused_and_named(monkeypatch, error, why):
    def refuses(name, **parameters):
        raise error

    of_version(monkeypatch, "9.9.0", refuses)
    with pytest.raises(
        BadData,
        match=rf"^reasoning-gym 9\.9\.0 cannot generate basic_arithmetic, level 1: {why}.*; the pinned rows are from 0\.1\.25$",
    ):
        reasoning_gym.rows(**OPTIONS)
    with pytest.raises(Unavailable, match="reasoning-gym 9.9.0 cannot generate"):
        SOURCE.build()
