"""Answers of mathematics are compared in value, as SymPy does, and nothing of them is run."""

import re
from fractions import Fraction

import numpy as np
import pytest
from farshift.benchmarks.answers import Answers
from farshift.benchmarks.metrics import math_value
from farshift.benchmarks.metrics.math_value import is_equal_answer, read_value
from farshift.benchmarks.model import Task
from hypothesis import given, settings
from hypothesis import strategies as st

numbers = st.integers(0, 12).map(str) | st.tuples(st.integers(0, 9), st.integers(0, 99)).map(lambda x: f"{x[0]}.{x[1]}")
expressions = st.recursive(
    numbers,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda x: f"({x[0]}{x[1]}{x[2]})"),
        st.tuples(inner, inner).map(lambda x: f"\\frac{{{x[0]}}}{{{x[1]}}}"),
        inner.map(lambda x: f"-{x}"),
        inner.map(lambda x: f"{x}^2"),
    ),
    max_leaves=6,
)


def in_python(text: str) -> str:
    """The same expression for Python, with exact numbers; ours alone, never an answer of a model."""
    text = text.replace("^", "**").replace("\\frac", "_divide").replace("}{", ",").replace("{", "(").replace("}", ")")
    return re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)(?!\w)", r"Fraction('\1')", text.replace("**2", "**_two"))


@settings(max_examples=150)
@given(text=expressions)
def test_an_expression_has_the_value_that_exact_arithmetic_gives(text):
    names = {"Fraction": Fraction, "_two": 2, "_divide": lambda a, b: a / b}
    try:
        expected = eval(in_python(text), names)
    except ZeroDivisionError:
        assert read_value(text) is None
    else:
        assert read_value(text) == expected


def test_roots_of_perfect_squares_are_exact():
    root = Fraction(10**30 + 1, 10**20 + 39)
    square = f"\\frac{{{root.numerator**2}}}{{{root.denominator**2}}}"
    assert read_value(f"\\sqrt{{{square}}}") == read_value(f"({square})^{{1/2}}") == root


@pytest.mark.parametrize(
    ("given_answer", "expected"),
    [
        ("0.5", "\\frac{1}{2}"),
        ("x = 3", "3"),
        ("2\\sqrt{2}", "\\sqrt{8}"),
        ("\\frac{\\sqrt{2}}{2}", "1/\\sqrt2"),
        ("\\sqrt[3]{27}", "3"),
        ("2π", "2\\pi"),
        ("e^{i\\pi}", "-1"),
        ("(0.5, -2)", "\\left(\\frac12, -2\\right)"),
        ("[2, 3, 3]", "2, 3, 3"),
        ("\\{3, 1\\}", "\\{1, 3\\}"),
        ("\\begin{pmatrix} 1 & 0.5 \\\\ 0 & 2 \\end{pmatrix}", "[[1, 1/2], [0, 2]]"),
        ("1,234", "1234"),
        ("\\text{B}", "B"),
    ],
)
def test_equal_values_in_other_forms_match(given_answer, expected):
    assert is_equal_answer(given_answer, expected)
    assert is_equal_answer(expected, given_answer)


@pytest.mark.parametrize(
    ("given_answer", "expected"),
    [
        ("1.414", "\\sqrt{2}"),
        ("0.333", "1/3"),
        ("(1, 2)", "(2, 1)"),
        ("(1, 2)", "[1, 2]"),
        ("\\{1, 1, 2\\}", "\\{1, 2, 2\\}"),
        ("12", "(12, 13)"),
        ("x+1", "1+x"),
        ("", "0"),
    ],
)
def test_other_values_do_not_match(given_answer, expected):
    assert not is_equal_answer(given_answer, expected)


@pytest.mark.parametrize(
    "text",
    [
        "9^{9^{9^9}}",
        "(" * 5000,
        "[" * 60 + "1" + "]" * 60,
        "1/0",
        "__import__('os')",
        "1.2.3",
        "1e999",
        "i^{10^9}",
        "-" * 1900 + "1",
    ],
)
def test_a_hostile_answer_has_no_value_or_a_small_one_at_once(text):
    value = read_value(text)
    assert value is None or isinstance(value, Fraction | complex)
    assert not is_equal_answer(text, "7")


def test_rows_are_scored_and_a_missing_answer_is_wrong():
    answers = Answers.all_given(np.array(["0.5", None, "2"], object))
    truth = np.array(["1/2", "1", "3"], object)
    assert math_value.per_row(answers, truth, Task("sequence", ("problem",), "answer")).tolist() == [1, 0, 0]
