"""Puzzles that the user's own reasoning-gym makes: the pinned ones or none."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.core.errors import BadData, MissingExtra, Unavailable
from farshift.leaderboard.publish.examples import explain_absence
from farshift.loaders.acquire.source import find_source
from farshift.loaders.freezing.verify import verify_each
from farshift.loaders.generators import reasoning_gym
from farshift.loaders.listing import has_local_rows
from farshift.splits.catalogue import find_manifest

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


def test_without_the_package_a_line_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    line = r"^generating the puzzles of reasoning_gym needs an optional dependency: pip install 'farshift\[puzzles\]'$"
    with pytest.raises(MissingExtra, match=line):
        SOURCE.write(tmp_path / "rows.arrow")
    with pytest.raises(Unavailable, match=line):  # where data cannot be had, as without a network, nothing else stops
        SOURCE.write(tmp_path / "rows.arrow")
    assert (SOURCE.extra, SOURCE.lacks) == ("puzzles", "puzzles")
    assert find_source("scan").extra == ""


def test_without_the_package_splits_are_unavailable_not_wrong(monkeypatch, cache):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    manifest = find_manifest("reasoning_gym/maze")
    assert not has_local_rows(manifest)
    (result,) = verify_each([manifest])
    assert (result.state, "farshift[puzzles]" in result.why) == ("unavailable", True)


def test_no_page_depends_on_whether_the_package_is_there():
    assert "farshift[puzzles]" in explain_absence(find_benchmark("reasoning_gym/maze"), SOURCE)


def of_version(monkeypatch, version, create_dataset):
    monkeypatch.setitem(sys.modules, "reasoning_gym", SimpleNamespace(create_dataset=create_dataset))
    monkeypatch.setattr(reasoning_gym, "version_of", lambda name: version)


def test_another_version_that_makes_other_puzzles_is_refused_and_named(monkeypatch, tmp_path):
    def others(name, seed, size, **parameters):
        return ({"question": f"{name} {seed + row}", "answer": "1"} for row in range(size))

    of_version(monkeypatch, "9.9.0", others)
    with pytest.raises(Unavailable) as caught:
        SOURCE.write(tmp_path / "rows.arrow")
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
def test_a_version_that_knows_no_such_puzzles_is_refused_and_named(monkeypatch, tmp_path, error, why):
    def refuses(name, **parameters):
        raise error

    of_version(monkeypatch, "9.9.0", refuses)
    with pytest.raises(
        BadData,
        match=rf"^reasoning-gym 9\.9\.0 cannot generate basic_arithmetic, level 1: {why}.*; the pinned rows are from 0\.1\.25$",
    ):
        reasoning_gym.rows(**OPTIONS)
    with pytest.raises(Unavailable, match="reasoning-gym 9.9.0 cannot generate"):
        SOURCE.write(tmp_path / "rows.arrow")
