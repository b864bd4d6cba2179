"""What an algorithmic task is given to draw from, and how its instances become rows."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from algorithmic_cases import instances
from farshift.core.errors import BadDefinition, UnknownName
from farshift.core.plugins import find_files_by_name, load_module
from farshift.loaders.generators.algorithmic import rows
from farshift.loaders.generators.tasks import Draws, Tape
from hypothesis import given
from hypothesis import strategies as st

PLACE = "loaders/generators/tasks"


@given(few=st.integers(1, 20), more=st.integers(0, 20), width=st.integers(1, 9), wider=st.integers(0, 9))
def test_more_rows_and_places_leave_the_first_as_they_were(few, more, width, wider):
    small, large = Draws("s", few), Draws("s", few + more)
    assert np.array_equal(small.bits("n", width), large.bits("n", width + wider)[:few, :width])
    assert np.array_equal(small.below("n", 7, width), large.below("n", 7, width + wider)[:few, :width])


def test_streams_and_names_are_drawn_apart():
    drawn = [Draws(stream, 50).bits(name, 4) for stream in ("a", "b") for name in ("x", "y")]
    assert len({tuple(item.ravel().tolist()) for item in drawn}) == 4


def test_every_number_below_a_bound_is_drawn_and_no_other():
    bounds = np.arange(1, 2001)
    numbers = Draws("s", 2000).number("n", bounds)
    assert (numbers >= 0).all() and (numbers < bounds).all()
    assert set(Draws("s", 300).number("m", 5).tolist()) == {0, 1, 2, 3, 4}


def test_permutations_hold_each_number_once_and_differ():
    drawn = Draws("s", 100).permutations("p", 30)
    assert (np.sort(drawn, axis=1) == np.arange(30)).all()
    assert len({tuple(row) for row in drawn.tolist()}) == 100


def test_a_tape_does_not_end_and_is_no_others():
    tapes = list(Draws("s", 2).tapes("t"))
    first, second = ([tape.below(1000) for _ in range(500)] for tape in tapes)
    assert len(set(first)) > 300 and first != second
    assert [Tape("s/t", 0).below(1000)] == first[:1]


def test_a_tape_shuffles_evenly():
    counts = np.zeros((4, 4))
    for tape in Draws("s", 4000).tapes("t"):
        for position, value in enumerate(tape.shuffled(range(4))):
            counts[position, value] += 1
    assert (abs(counts / 4000 - 0.25) < 0.04).all()


def test_rows_do_not_depend_on_how_many_there_are_of_a_size():
    few, many = (instances("traces_branching/tree_search", [3, 9], each=each, trace=True) for each in (5, 40))
    assert [row for row in few if row["length"] == 9] == [row for row in many if row["length"] == 9][:5]


def test_no_input_comes_twice_and_a_small_size_gives_what_it_has():
    result = instances("chomsky_regular/parity_check", [1, 2, 3, 10], each=200)
    assert len({row["input"] for row in result}) == len(result)
    sizes = [row["length"] for row in result]
    assert [sizes.count(size) for size in (1, 2, 3, 10)] == [2, 4, 8, 200]


def test_the_seed_decides():
    def drawn(seed):
        sizes = [{"first": 9, "last": 9, "each": 5}]
        return rows(task="strings/mode", seed=seed, sizes=sizes)["input"].to_pylist()

    assert drawn("a") == drawn("a") != drawn("b")


def test_a_range_of_sizes_may_have_a_step_and_the_size_another_name():
    sizes = [{"first": 1, "last": 5, "step": 2, "each": 3}, {"first": 8, "last": 9, "each": 1}]
    result = rows(task="strings/mode", seed="s", sizes=sizes, measure="letters")
    assert result["letters"].to_pylist() == [1] * 3 + [3] * 3 + [5] * 3 + [8, 9]


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        ([{"first": 1, "last": 3}], "each range needs first, last, each"),
        ([{"first": 1, "last": 3, "each": 1, "every": 2}], "each range needs first, last, each"),
        ([{"first": 1, "last": 3, "each": 1}, {"first": 3, "last": 4, "each": 1}], "3 is in two ranges"),
    ],
)
def test_sizes_that_say_nothing_clear_are_refused(sizes, complaint):
    with pytest.raises(BadDefinition, match=complaint):
        rows(task="strings/mode", seed="s", sizes=sizes)


def test_an_unknown_task_is_refused_with_one_that_is_meant():
    with pytest.raises(UnknownName, match="did you mean strings/mode"):
        rows(task="strings/mod", seed="s", sizes=[])


def test_a_task_of_ones_own_is_found(tmp_path, monkeypatch):
    folder = tmp_path / PLACE
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(
        "from farshift.loaders.generators.tasks import Examples\n"
        "def ones(draws, length):\n"
        "    return Examples([f'{n} {length}' for n in range(draws.rows)], ['1' * length] * draws.rows)\n"
    )
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    result = instances("mine/ones", [2], each=3)
    assert [(row["input"], row["output"]) for row in result] == [("0 2", "11"), ("1 2", "11"), ("2 2", "11")]


def test_every_public_function_of_the_tasks_is_a_task():
    for file in find_files_by_name(PLACE, ".py"):
        holder = load_module(PLACE, file, "task")
        public = [
            function
            for name, function in vars(holder).items()
            if inspect.isfunction(function) and function.__module__ == holder.__name__ and not name.startswith("_")
        ]
        assert public
        for function in public:
            assert next(iter(inspect.signature(function).parameters)) == "draws"
            assert inspect.signature(function).return_annotation == "Examples"
            assert inspect.getdoc(function)
