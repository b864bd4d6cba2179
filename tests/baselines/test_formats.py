"""Formats: what networks read and write in place of a task's texts, and the answer read back out of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from farshift.baselines.encoding.encoding import PAD, SequenceEncoding, make_encoding
from farshift.baselines.formats import make_format
from farshift.baselines.formats.scratchpad import COMPUTATIONS
from farshift.baselines.recipe import find_plugin_files, read_settings
from farshift.benchmarks.model import Task
from farshift.core.errors import ModelError, UnknownName

from .small_sequences import COPY, pairs
from .toys import ADD, PARITY, TURN, Rows, accuracy, additions, bits, commands, recipe, trained, words

GRID = Task("sequence", ("grid",), "path", tokens="character", aligned=True)


def made(name: str, task: Task, train: Any, **settings: Any) -> Any:
    return make_format(task, train, {"format": name, "pieces": "io", "hint_range": 32, **settings})


CASES = [
    ("plain", TURN, commands().numpy()),
    ("plain", GRID, {"grid": words(["a. .b", "..x"]), "path": words(["_* *_", "**_"])}),
    ("reversed", TURN, commands().numpy()),
    ("reversed", GRID, {"grid": words(["a. .b", "..x"]), "path": words(["_* *_", "**_"])}),
    ("index_hints", TURN, commands().numpy()),
    ("index_hints", GRID, {"grid": words(["a. .b", "..x"]), "path": words(["_* *_", "**_"])}),
    ("index_hints", PARITY, bits(20, 6).numpy()),
    ("scratchpad", PARITY, bits(20, 6).numpy()),
    ("scratchpad", COPY, pairs(("1 2 + 9 9", "1 1 1"), ("0 1 + 0 2", "0 0 3"))),
]


@pytest.mark.parametrize(("name", "task", "train"), CASES, ids=[f"{name}, {task.label}" for name, task, _ in CASES])
def test_the_answer_is_read_back_out_of_what_was_taught(name: str, task: Task, train: Any) -> None:
    form = made(name, task, train)
    answers = list(train[task.label])
    taught = form.format_targets(train[task.inputs[0]], answers)
    assert [form.answer(text) for text in taught] == answers
    encoded = SequenceEncoding(task, train, format=form)
    assert encoded.texts(encoded.encode(train).target.numpy()) == answers


def test_a_scratchpad_writes_each_step_then_the_answer() -> None:
    train = pairs(("1 0 1", "0"), ("1", "1"))
    taught = {
        "io": "1 = 1 ; 0 = 1 ; 1 = 0 ; => 0",
        "c": ": 0 + 1 ; : 1 + 0 ; : 1 + 1 ; => 0",
        "icovr": "1 : 0 + 1 = 1 ( 1 ) | 0 1 ; 0 : 1 + 0 = 1 ( 1 ) | 1 ; 1 : 1 + 1 = 0 ( 0 ) | ; => 0",
    }
    for pieces, expected in taught.items():
        form = made("scratchpad", COPY, train, pieces=pieces)
        assert form.format_targets(["1 0 1"], ["0"]) == [expected]
    assert form.format_inputs(["1 0 1"]) == ["1 0 1"]


def test_addition_is_worked_from_the_right_with_carries() -> None:
    form = made("scratchpad", COPY, pairs(("1 2 + 9", "2 1"), ("9 + 9", "1 8")), pieces="iov")
    assert form.format_targets(["9 5 + 7"], ["1 0 2"]) == ["5 7 = 2 ( 1 ) ; 9 0 = 0 ( 1 ) ; = 1 ( ) ; => 1 0 2"]


def test_innermost_lists_are_replaced_by_their_values_one_by_one() -> None:
    form = made("scratchpad", COPY, pairs(("[MAX 2 [SM 9 8 ] ]", "7")), pieces="ior")
    assert form.format_targets(["[MAX 2 [SM 9 8 ] ]"], ["7"]) == [
        "[SM 9 8 ] = 7 | [MAX 2 7 ] ; [MAX 2 7 ] = 7 | 7 ; => 7",
    ]


def expression(drawn: np.random.Generator, depth: int) -> tuple[str, int]:
    """A random ListOps expression and its value, by recursion."""
    if depth == 0 or drawn.random() < 0.3:
        value = int(drawn.integers(10))
        return str(value), value
    name = str(drawn.choice(["MIN", "MAX", "MED", "SM"]))
    parts = [expression(drawn, depth - 1) for _ in range(drawn.integers(1, 5))]
    values = [value for _, value in parts]
    result = {"MIN": min(values), "MAX": max(values), "MED": int(np.median(values)), "SM": sum(values) % 10}[name]
    return f"[{name} {' '.join(text for text, _ in parts)} ]", result


def test_list_operations_are_evaluated_as_by_recursion() -> None:
    drawn = np.random.default_rng(0)
    checked = 0
    for _ in range(200):
        text, value = expression(drawn, 3)
        worked = COMPUTATIONS["list operations"](text.split())
        if worked is None:
            assert text == str(value), "only a bare number has no steps"
            continue
        assert worked.answers["last"] == [str(value)]
        assert len(worked.steps) == text.count("[")
        checked += 1
    assert checked > 100


def test_sums_are_those_of_arithmetic() -> None:
    drawn = np.random.default_rng(1)
    for _ in range(100):
        a, b = (list(map(str, drawn.integers(0, 10, drawn.integers(1, 7)))) for _ in range(2))
        worked = COMPUTATIONS["addition"]([*a, "+", *b])
        assert worked is not None
        total = int("".join(a)) + int("".join(b))
        assert worked.answers["shortest"] == list(str(total))
        assert worked.answers["padded"] == list(str(total).zfill(max(len(a), len(b)) + 1))
        assert worked.answers["padded, last digit first"] == worked.answers["padded"][::-1]
        values = drawn.integers(0, 10, 5).tolist()
        for words_ in (" ".join(map(str, values)), " + ".join(map(str, values))):
            sums = COMPUTATIONS["running sum modulo 10"](words_.split())
            assert sums is not None
            assert sums.answers["whole"] == [str(x) for x in np.cumsum(values) % 10]


def test_the_computation_is_the_first_that_all_training_rows_agree_with() -> None:
    result = {
        "copy": pairs(("a b", "a b"), ("1", "1")),
        "reverse": pairs(("a b", "b a")),
        "running parity": pairs(("1 1", "0"), ("1 0", "1")),
        "running sum modulo 10": pairs(("1 1", "2"), ("9 3", "2")),
        "addition": pairs(("1 + 1", "2"), ("9 + 3", "1 2")),
    }
    for name, train in result.items():
        assert made("scratchpad", COPY, train).name == name


def test_rows_that_no_computation_answers_are_an_error() -> None:
    with pytest.raises(ModelError, match=r"none of the computations copy.*choose another format"):
        made("scratchpad", COPY, pairs(("a b", "a b"), ("a b", "c")))
    form = made("scratchpad", COPY, pairs(("a b", "a b")))
    with pytest.raises(ModelError, match=r"copy does not give the answer to 'a b'"):
        form.format_targets(["a b"], ["b"])


def test_a_scratchpad_without_an_answer_answers_nothing() -> None:
    form = made("scratchpad", COPY, pairs(("1 0 1", "0"), ("1", "1")))
    assert form.answer("1 = 1 ; 0 =") == ""
    assert form.answer("1 = 1 ; => 0 => 1") == "1"
    assert form.answer("=>") == ""


def test_pieces_that_there_are_not_and_texts_that_hold_the_marks_are_refused() -> None:
    for pieces in ("", "ix"):
        with pytest.raises(ModelError, match="use letters of 'icovr'"):
            made("scratchpad", COPY, pairs(("a", "a")), pieces=pieces)
    with pytest.raises(ModelError, match="contain '=>'"):
        made("scratchpad", COPY, pairs(("a => b", "a => b")))
    with pytest.raises(ModelError, match="already: 'i3'"):
        made("index_hints", COPY, pairs(("i3 a", "a")))
    with pytest.raises(UnknownName, match="no format named 'scratch'"):
        made("scratch", COPY, pairs(("a", "a")))


def test_digits_of_equal_value_have_the_same_hint_on_both_sides_of_a_separator() -> None:
    form = made("index_hints", COPY, pairs(("3 6 + 9", "4 5"), ("1 2 0 + 2 2", "1 4 2")), hint_range=100)
    first, a, second, b, plus, third, c = form.format_inputs(["3 6 + 9"])[0].split()
    assert (a, b, plus, c) == ("3", "6", "+", "9")
    assert second == third
    assert int(second[1:]) == (int(first[1:]) + 1) % 100
    # Answers are as long as the longest operand here, so that their digits share its hints too.
    assert form.format_targets(["3 6 + 9"], ["4 5"]) == [f"{first} 4 {second} 5"]


def test_answers_of_other_lengths_are_hinted_from_the_first_hint_of_the_row_on() -> None:
    form = made("index_hints", COPY, pairs(("a b c", "0"), ("d d", "0")))
    first = form.format_inputs(["a b c"])[0].split()[0]
    assert form.format_targets(["a b c"], ["0"]) == [f"{first} 0"]


def test_a_longer_answer_begins_before_the_first_hint() -> None:
    form = made("index_hints", COPY, pairs(("5 + 7", "1 2"), ("1 6 + 0 8", "0 2 4")))
    first = int(form.format_inputs(["5 + 7"])[0].split()[0][1:])
    assert form.format_targets(["5 + 7"], ["1 2"]) == [f"i{(first - 1) % 32} 1 i{first} 2"]


def test_hints_of_small_rows_cover_the_whole_range_evenly() -> None:
    form = made("index_hints", COPY, pairs(("1 0", "1 0"), ("1 1", "1 1")), hint_range=8)
    starts = [form.format_inputs([f"{position} x"])[0].split()[0] for position in range(4000)]
    counts = np.unique(starts, return_counts=True)[1]
    assert len(counts) == 8
    assert counts.min() > 400


def test_more_words_than_hints_are_an_error_that_says_what_to_set() -> None:
    with pytest.raises(ModelError, match=r"4 words, but there are 3 hints: raise the setting hint_range"):
        made("index_hints", COPY, pairs(("a b c d", "a"), ("e", "e")), hint_range=3)


def test_a_format_that_puts_words_between_makes_an_aligned_task_one_that_is_not() -> None:
    train = bits(10, 5).numpy()
    for name in ("reversed", "index_hints", "scratchpad"):
        assert not SequenceEncoding(PARITY, train, format=made(name, PARITY, train)).sizes.aligned
    assert SequenceEncoding(PARITY, train, format=made("plain", PARITY, train)).sizes.aligned
    with pytest.raises(ModelError, match="format plain"):
        trained(recipe("deep_thinking", 1, format="reversed"), PARITY, bits(10, 5))


def test_a_scratchpad_of_twice_the_length_is_within_the_limit_of_what_is_decoded() -> None:
    train = bits(50, 10).numpy()
    form = made("scratchpad", PARITY, train, pieces="icovr")
    long = bits(1, 20).numpy()
    written = SequenceEncoding(PARITY, train, 4.0, form)
    assert int((written.encode(long).target != PAD).sum()) <= written.limit


def test_formats_are_for_texts_alone() -> None:
    defaults = read_settings(find_plugin_files("networks")["mlp"].parent.parent / "encoding" / "encoding.py")
    with pytest.raises(ModelError, match="formats are for texts, and this is a classification task"):
        make_encoding(ADD, additions().numpy(), defaults | {"format": "reversed"})


@pytest.mark.parametrize("name", ["reversed", "index_hints", "scratchpad"])
def test_a_network_taught_in_a_format_answers_in_the_tasks_own_texts(name: str) -> None:
    rows = Rows(command=words(["0 1 1", "1 1", "0"]), actions=words(["0 1 0", "1 0", "0"]))
    made_ = recipe("lstm", 80, width=16, lr=0.02, batch_size=8, format=name, hint_range=4)
    assert accuracy(trained(made_, TURN, rows), TURN, rows) == 1
