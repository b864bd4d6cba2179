"""Metrics of free answers: ROUGE-L against the textbook's table and by hand, LaTeX as it is compared."""

from __future__ import annotations

import numpy as np
import pytest
from farshift import Answers
from farshift.benchmarks.extraction import load_extraction
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.metrics.rouge_l import count_common, split_words
from farshift.benchmarks.model import Task
from hypothesis import example, given
from hypothesis import strategies as st

TASK = Task("sequence", ("x",), "y")


def score(metric: str, answer: str | None, expected: str) -> float:
    answers = Answers.all_given(np.array([answer], object))
    return float(find_metric(metric).per_row(answers, np.array([expected], object), TASK)[0])


def table(left: str, right: str) -> int:
    """The longest common subsequence, entry by entry."""
    entries = np.zeros((len(left) + 1, len(right) + 1), int)
    for i, a in enumerate(left, 1):
        for j, b in enumerate(right, 1):
            entries[i, j] = entries[i - 1, j - 1] + 1 if a == b else max(entries[i - 1, j], entries[i, j - 1])
    return int(entries[-1, -1])


@given(st.text("abcd", max_size=80), st.text("abcd", max_size=80))
@example("", "a")
def test_the_longest_common_subsequence_is_the_tables(left, right):
    assert count_common(left, right) == table(left, right)


def test_rouge_l_is_the_f_measure_of_the_best_reference():
    # Lin 2004, section 3: against "police killed the gunman" 3 of 4 words are in order, then 2 of 4.
    assert score("rouge_l", "Police kill the gunman!", "police killed the gunman") == 0.75
    assert score("rouge_l", "the gunman kill police", "police killed the gunman") == 0.5
    assert score("rouge_l", "the gunman", "police killed the gunman") == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert score("rouge_l", "the gunman", "nobody | The gunman.") == 1
    assert (score("rouge_l", None, "a"), score("rouge_l", "!", "?"), score("rouge_l", "b", "a")) == (0, 0, 0)
    assert split_words("It's x_1 = 2.50, Übung") == ["it", "s", "x", "1", "2", "50", "bung"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("\\dfrac{1}{2}", "\\frac12"),
        ("1/2", "\\frac{1}{2}"),
        (" 1,234.50 ", "1234.5"),
        ("-0", "0"),
        ("\\left( 3, \\frac{\\pi}{2} \\right)", "(3,\\frac{\\pi}{2})"),
        ("\\text{B}", "B"),
        ("$90^\\circ$.", "90"),
    ],
)
def test_answers_in_latex_match_in_another_writing(answer, expected):
    assert score("math_match", answer, expected) == score("math_match", expected, answer) == 1


@pytest.mark.parametrize(("answer", "expected"), [("12", "\\frac{1}{2}"), ("0.5", "1/2"), ("(1,234)", "(1234)")])
def test_other_answers_do_not_match(answer, expected):
    assert score("math_match", answer, expected) == 0
    assert score("math_match", None, expected) == 0


def test_the_last_complete_box_is_the_answer():
    extract = load_extraction("boxed", 1, TASK)
    assert extract("so \\boxed{1} and \\boxed{\\frac{1}{2}}.", TASK) == "\\frac{1}{2}"
    assert extract("so \\boxed{7} and \\boxed{\\frac{1}", TASK) == "7"
    assert extract("the answer is 7", TASK) is None
