"""Augmentations: rows made from training rows, with the weight and the group of the row that they were made from."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from farshift.baselines.augmentations import augment_rows
from farshift.baselines.augmentations.primitives import find_primitives
from farshift.baselines.encoding.encoding import make_encoding
from farshift.baselines.recipe import find_plugin_files, read_settings
from farshift.benchmarks.model import Task
from farshift.core.errors import ModelError

from .small_sequences import COPY, pairs
from .toys import ADD, PARITY, TURN, Rows, accuracy, additions, bits, commands, recipe, trained, words

SCAN = [
    ("walk left", "L W"),
    ("walk and run", "W R"),
    ("run twice", "R R"),
    ("run left and walk twice", "L R W W"),
    ("jump", "J"),
]


def grown(task: Task, rows: Any, **settings: Any) -> list[tuple[str, str]]:
    """The added rows alone."""
    defaults = {"augment": "none", "copies": 1, "hint_task": "successor"}
    count = len(rows[task.label])
    result, weight, _ = augment_rows(task, rows, np.ones(count), None, defaults | settings)
    assert len(weight) == len(result[task.label])
    return list(zip(result[task.inputs[0]][count:], result[task.label][count:], strict=True))


def test_without_an_augmentation_nothing_changes() -> None:
    rows, weight, group = commands().numpy(), np.ones(36), np.arange(36)
    result = augment_rows(TURN, rows, weight, group, {"augment": "none"})
    assert all(a is b for a, b in zip(result, (rows, weight, group), strict=True))


def test_primitives_are_the_pairs_of_words_that_no_row_tells_apart() -> None:
    rows = [
        (a.split(), b.split()) for a, b in zip(*(commands().columns[x] for x in ("command", "actions")), strict=True)
    ]
    read, written = ({word for row in rows for word in row[side]} for side in (0, 1))
    where = {word: [word in row[side] for row in rows] for side, known in enumerate((read, written)) for word in known}
    expected = {
        a: b
        for a, b in product(read, written)
        if where[a] == where[b] and not all(where[a]) and sum(where[a] == where[other] for other in read | written) == 2
    }
    assert find_primitives([a for a, _ in rows], [b for _, b in rows]) == expected
    assert expected == {"walk": "W", "run": "R", "look": "K", "jump": "J", "left": "L", "right": "T"}


def test_words_that_always_come_together_are_no_primitives() -> None:
    assert find_primitives([["a", "b"], ["c"]], [["A"], ["C"]]) == {"c": "C"}
    assert find_primitives([["a"], ["a", "c"]], [["A"], ["A", "C"]]) == {"c": "C"}


def test_renaming_back_gives_the_row_that_was_cloned() -> None:
    def back(text: str) -> str:
        return " ".join(word.split("_")[0] for word in text.split())

    copies = grown(COPY, pairs(*SCAN), augment="primitives", copies=5)
    assert [(back(a), back(b)) for a, b in copies] == [row for row in SCAN for _ in range(5)]
    assert len(set(copies) | set(SCAN)) == 6 * len(SCAN), "no two copies of a row are alike"


def test_a_clone_has_the_same_name_for_a_primitive_on_both_sides() -> None:
    names = {"walk": "W", "run": "R", "jump": "J", "left": "L"}
    for read, written in grown(COPY, pairs(*SCAN), augment="primitives", copies=7):
        renamed = [
            names[word.split("_")[0]] + word[word.find("_") :] * ("_" in word)
            for word in read.split()
            if word.split("_")[0] in names
        ]
        assert set(renamed) == set(written.split())


def test_every_name_of_a_primitive_is_met_as_often_as_the_others() -> None:
    rows = pairs(*SCAN)
    texts = [*rows["input"], *(read for read, _ in grown(COPY, rows, augment="primitives", copies=3))]
    for word, often in (("walk", 3), ("run", 3), ("jump", 1), ("left", 2)):
        counts = [sum(name in text.split() for text in texts) for name in (word, *(f"{word}_{i}" for i in (1, 2, 3)))]
        assert counts == [often] * 4


def test_a_new_name_is_none_that_there_is() -> None:
    copies = grown(COPY, pairs(("a", "A"), ("a_1", "B")), augment="primitives", copies=1)
    assert ("a_1_", "A_1") in copies


def test_weights_and_groups_follow_the_rows() -> None:
    rows, group = pairs(*SCAN), np.array(["p", "q", "p", "q", "r"], object)
    settings = {"augment": "primitives", "copies": 2}
    result, weight, groups = augment_rows(COPY, rows, np.array([1.0, 2, 3, 4, 5]), group, settings)
    assert groups is not None
    assert weight.tolist() == [1, 2, 3, 4, 5, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert "".join(groups) == "pqpqr" + "ppqqppqqrr"
    assert len(result["input"]) == 15


def test_a_task_without_primitives_is_an_error() -> None:
    with pytest.raises(ModelError, match="no word of the inputs corresponds to one word of the outputs"):
        grown(COPY, pairs(("a b", "x"), ("b a", "x")), augment="primitives")
    with pytest.raises(ModelError, match="tokens are characters"):
        grown(PARITY, bits(4, 4).numpy(), augment="primitives")
    with pytest.raises(ModelError, match="this is a classification task"):
        augment_rows(ADD, additions().numpy(), np.ones(49), None, {"augment": "primitives", "copies": 1})


def test_successors_follow_the_last_place_of_a_word_in_the_answer() -> None:
    result = grown(COPY, pairs(("3 1 1 2", "1 1 2 3"), ("7", "7")), augment="task_hinting", copies=9)
    assert sorted(result) == [("3 1 1 2 → 1", "2"), ("3 1 1 2 → 2", "3")]


def test_a_blank_is_filled_with_the_word_that_stood_there() -> None:
    result = grown(COPY, pairs(("b a", "a b")), augment="task_hinting", copies=9, hint_task="fill")
    assert sorted(result) == [("b a □ a □", "b"), ("b a □ □ b", "a")]


def test_counts_are_of_the_answer_in_decimal_digits() -> None:
    result = grown(
        COPY, pairs(("x", " ".join(["a"] * 12 + ["b"]))), augment="task_hinting", copies=9, hint_task="count"
    )
    assert sorted(result) == [("x # a", "1 2"), ("x # b", "1")]


def test_hints_are_drawn_without_repetition_as_many_as_asked_for() -> None:
    answer = " ".join(map(str, range(10)))
    for copies in (1, 4):
        result = grown(COPY, pairs((answer, answer), ("5 4", "4 5")), augment="task_hinting", copies=copies)
        assert len(result) == len(set(result)) == copies + 1


def test_hints_of_texts_of_characters_are_characters() -> None:
    task = Task("sequence", ("bits",), "sums", tokens="character")
    rows = {"bits": words(["ab"]), "sums": words(["ba"])}
    assert grown(task, rows, augment="task_hinting") == [("ab→b", "a")]


def test_hints_that_cannot_be_asked_are_an_error() -> None:
    with pytest.raises(ModelError, match="this task is aligned"):
        grown(PARITY, bits(4, 4).numpy(), augment="task_hinting")
    with pytest.raises(ModelError, match="use successor, fill, count"):
        grown(COPY, pairs(("a", "a")), augment="task_hinting", hint_task="sort")
    with pytest.raises(ModelError, match="contains '→'"):
        grown(COPY, pairs(("a → b", "a")), augment="task_hinting")


def test_words_of_added_rows_are_in_the_vocabulary() -> None:
    settings = read_settings(find_plugin_files("networks")["mlp"].parent.parent / "encoding" / "encoding.py") | {
        "augment": "primitives",
        "copies": 1,
    }
    rows, _, _ = augment_rows(COPY, pairs(*SCAN), np.ones(5), None, settings)
    source = make_encoding(COPY, rows, settings).sizes.source
    assert source == 4 + len({word for text, _ in SCAN for word in text.split()}) + 4


def test_a_network_is_trained_on_the_rows_that_were_added() -> None:
    rows = Rows(command=words(["a b", "b", "c"]), actions=words(["A B", "B", "C"]))
    built = recipe("lstm", 60, width=16, lr=0.02, batch_size=8, augment="primitives", copies=1)
    model = trained(built, TURN, rows)
    requested = Rows(command=words(["a_1 b_1", "c_1"]), actions=words(["A_1 B_1", "C_1"]))
    assert accuracy(model, TURN, requested) == 1
