"""Answers of strange types: each is read as what it plainly says, or refused in one line; none is taken for another."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from farshift import Answers, Failed
from farshift.benchmarks.answers import ABSTAINED, ANSWERED
from farshift.benchmarks.model import Task
from farshift.benchmarks.parsing import BatchLocation, read_answer
from farshift.core.errors import ModelError
from farshift.core.text import format_count

CLASSES = Task("classification", ("a",), "label", classes=3)
NUMBERS = Task("regression", ("a",), "target")
TEXTS = Task("sequence", ("text",), "answer")


def read(answer: Any, task: Task, rows: int = 3) -> Answers:
    return read_answer(answer, BatchLocation("id_test", 0, np.arange(rows, dtype=np.uint64)), task)


class Sized:
    """Has a length and gives something else when it is gone through, as a table of columns does."""

    def __init__(self, count: int, items: list[Any] | None) -> None:
        self.count, self.items = count, items

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Any:
        if self.items is None:
            raise RuntimeError("no rows here")
        return iter(self.items)


def test_whole_numbers_are_classes_whatever_holds_them():
    torch = pytest.importorskip("torch")
    for answer in (
        [0, 1, 2],
        (np.uint8(0), np.int64(1), 2),
        np.array([0, 1, 2], object),
        np.array([0, 1, 2], np.uint64),
        torch.tensor([0, 1, 2]),
        [torch.tensor(0), torch.tensor(1), torch.tensor(2)],
        np.ma.MaskedArray([0, 1, 2]),
    ):
        result = read(answer, CLASSES)
        assert result.prediction.tolist() == [0, 1, 2]
        assert result.prediction.dtype == np.int64
        assert result.answered.all()


@pytest.mark.parametrize("task", [CLASSES, NUMBERS], ids=lambda task: task.type)
def test_a_masked_entry_is_a_row_left_open_and_what_lies_under_the_mask_is_not_looked_at(task):
    answer = np.ma.MaskedArray([1, 999, 2], mask=[False, True, False])
    result = read(answer if task is CLASSES else answer / 4, task)
    assert result.status.tolist() == [ANSWERED, ABSTAINED, ANSWERED]
    assert result.prediction[result.answered].tolist() == ([1, 2] if task is CLASSES else [0.25, 0.5])


def test_a_masked_probability_is_refused():
    scores = np.ma.MaskedArray(np.full((3, 3), 1 / 3), mask=np.eye(3, dtype=bool))
    with pytest.raises(ModelError, match=r"shape \(3, 3\), expected \(3,\): one prediction per row"):
        read(scores, CLASSES)
    assert read(np.ma.MaskedArray(scores.data), CLASSES).scores is not None, "nothing is masked"


@pytest.mark.parametrize(
    "answer",
    ["abc", b"abc", {"a": 1, "b": 2, "c": 3}, OrderedDict(a=1, b=2, c=3), {"a", "b", "c"}, iter("abc"), np.array(3)],
    ids=lambda answer: type(answer).__name__,
)
@pytest.mark.parametrize("task", [CLASSES, TEXTS], ids=lambda task: task.type)
def test_what_has_no_rows_is_no_answer_even_where_its_length_would_fit(task, answer):
    with pytest.raises(ModelError, match=r"returned \w+ instead of 3 predictions on id_test, batch 0 \(rows 0{16}"):
        read(answer, task)


@pytest.mark.parametrize("items", [["only"], ["a", "b", "c", "d"], []])
def test_one_text_is_never_spread_over_all_rows(items):
    with pytest.raises(ModelError, match=f"returned {format_count(len(items), 'prediction')} for 3 rows on id_test"):
        read(Sized(3, items), TEXTS)


def test_an_answer_that_breaks_when_it_is_read_is_named_with_its_rows():
    with pytest.raises(ModelError, match=r"reading the Sized that predict returned on .* RuntimeError: no rows here"):
        read(Sized(3, None), TEXTS)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (np.array([True, False, True]), "dtype bool, expected whole numbers"),
        (None, "returned NoneType instead of 3 predictions"),
        ([0.0, 1.0, 2.0], "dtype float64, expected whole numbers"),
        ([10**30, 0, 1], "dtype object, expected whole numbers"),
        (np.array([2**63, 0, 1], np.uint64), "class 9223372036854775808 for row 0{16}"),
        (["0", "1", "2"], "expected whole numbers"),
        ([[0], [1], [2]], r"shape \(3, 1\), expected \(3,\)"),
        ([[0], [1, 2], []], "reading the list .* raised ValueError"),
        ([Failed("x"), -1, 0], "class -1 for row 0{15}1"),
    ],
)
def test_what_is_no_class_is_refused(answer, complaint):
    with pytest.raises(ModelError, match=complaint):
        read(answer, CLASSES)


@pytest.mark.parametrize(
    "number", [np.longdouble("1e4000"), np.float32("inf"), np.float16("nan")], ids=["too long", "infinite", "NaN"]
)
def test_a_number_is_refused_where_what_would_be_kept_is_not_finite(number):
    with pytest.raises(ModelError, match="NaN or infinity for row 0{16}"):
        read(np.array([number, 1, 2], type(number)), NUMBERS)


@pytest.mark.parametrize("rows", [2, 4])
def test_probabilities_of_too_few_or_too_many_rows_are_refused(rows):
    answers = Answers(np.array([0, 1, 2]), np.zeros(3, np.int8), np.full((rows, 3), 1 / 3, np.float32))
    with pytest.raises(ModelError, match=f"predict returned {rows} predictions for 3 rows"):
        read(answers, CLASSES)


def test_texts_of_numpy_are_texts():
    result = read(np.array(["walk", "", "führen"]), TEXTS)
    assert result.prediction.tolist() == ["walk", "", "führen"]


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (["walk", b"walk", "walk"], "returned bytes instead of text for row 0{15}1"),
        ([1, 1, 1], "returned int instead of text"),
        (["\ud800", "", ""], "text that is not valid Unicode"),
        (["x" * 100_001, "", ""], "a text of 100001 characters"),
    ],
)
def test_what_is_no_text_is_refused(answer, complaint):
    with pytest.raises(ModelError, match=complaint):
        read(answer, TEXTS)
