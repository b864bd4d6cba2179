"""The fifteen tasks of the Chomsky hierarchy, against their definitions (Deletang et al. 2023, arXiv 2207.02098)."""

from __future__ import annotations

from math import isqrt

import pytest
from algorithmic_cases import instances
from farshift.core.errors import BadDefinition

LENGTHS = (3, 4, 5, 8, 13, 40, 41, 120)
EVEN = (2, 4, 6, 12, 40, 120)
ODD = (1, 3, 5, 9, 39, 121)


def value(expression: str) -> int:
    """The value modulo 5, by Python's own arithmetic."""
    assert set(expression) <= set("01234+-*()")
    return eval(expression, {"__builtins__": {}}) % 5


def even_pairs(text: str) -> str:
    return str(sum(text[at : at + 2] in ("01", "10") for at in range(len(text) - 1)) % 2)


def walked(text: str) -> str:
    position = 0
    for step in text:
        position = (position + {"-": 4, "=": 0, "+": 1}[step]) % 5
    return str(position)


def pushed_and_popped(text: str) -> str:
    stack: list[str] = []
    for symbol in text:
        if symbol == "-":
            stack = stack[:-1]
        else:
            stack.append({"a": "0", "b": "1"}.get(symbol, symbol))
    return "".join(stack[::-1]) + "."


def number(bits: str) -> int:
    """Lowest bit first."""
    return sum(int(bit) << position for position, bit in enumerate(bits))


def lowest_first(total: int) -> str:
    return format(total, "b")[::-1]


def added(text: str) -> str:
    return lowest_first(sum(map(number, text.split("+"))))


def multiplied(text: str) -> str:
    left, right = map(number, text.split("*"))
    return lowest_first(left * right)


def missing(text: str) -> str:
    half = len(text) // 2
    return next(b if a == "_" else a for a, b in zip(text[:half], text[half:], strict=True) if "_" in (a, b))


@pytest.mark.parametrize(
    ("task", "answer", "lengths"),
    [
        ("chomsky_regular/even_pairs", even_pairs, LENGTHS),
        ("chomsky_regular/modular_arithmetic", lambda text: str(value(text)), ODD),
        ("chomsky_regular/parity_check", lambda text: str(text.count("1") % 2), LENGTHS),
        ("chomsky_regular/cycle_navigation", walked, LENGTHS),
        ("chomsky_context_free/modular_arithmetic_brackets", lambda text: str(value(text)), (1, 2, *LENGTHS)),
        ("chomsky_context_free/reverse_string", lambda text: "".join(reversed(text)), LENGTHS),
        ("chomsky_context_free/stack_manipulation", pushed_and_popped, (1, 2, *LENGTHS)),
        ("chomsky_context_sensitive/binary_addition", added, LENGTHS),
        ("chomsky_context_sensitive/binary_multiplication", multiplied, LENGTHS),
        ("chomsky_context_sensitive/duplicate_string", lambda text: text + text, LENGTHS),
        ("chomsky_context_sensitive/missing_duplicate", missing, EVEN),
        ("chomsky_context_sensitive/bucket_sort", lambda text: "".join(sorted(text)), LENGTHS),
        (
            "chomsky_context_sensitive/odds_first",
            lambda text: "".join(text[at] for at in [*range(1, len(text), 2), *range(0, len(text), 2)]),
            LENGTHS,
        ),
        (
            "chomsky_context_sensitive/compute_sqrt",
            lambda text: format(isqrt(int(text, 2)), f"0{-(-len(text) // 2)}b"),
            LENGTHS,
        ),
    ],
)
def test_the_answer_is_what_the_task_says(task, answer, lengths):
    result = instances(task, lengths)
    assert {row["length"] for row in result} == set(lengths)
    assert all(len(row["input"]) == row["length"] for row in result)
    assert [row["output"] for row in result] == [answer(row["input"]) for row in result]


def test_an_equation_has_one_solution_and_it_is_the_answer():
    result = instances("chomsky_context_free/solve_equation", LENGTHS)
    assert all(len(row["input"]) == row["length"] for row in result)
    for row in result:
        left, right = row["input"].split("=")
        assert row["input"].count("x") == 1
        assert [x for x in "01234" if value(left.replace("x", x)) == int(right)] == [row["output"]]


def test_the_examples_printed_with_the_tasks_come_out():
    assert pushed_and_popped("0110b--") == "110."
    assert pushed_and_popped("110---") == "."
    assert added("001+01101") == "01011"
    assert missing("011001_0") == "1"
    assert [value(text) for text in ("1+2*3", "1-1-1", "0*1+4*3-2")] == [2, 4, 0]


def test_a_long_expression_may_nest_deeper_than_python_recurses():
    [row] = instances("chomsky_context_free/modular_arithmetic_brackets", [4001], each=1)
    assert len(row["input"]) == 4001
    assert row["input"].count("(") == row["input"].count(")")


@pytest.mark.parametrize(
    ("task", "length", "complaint"),
    [
        ("chomsky_regular/modular_arithmetic", 4, "odd in number"),
        ("chomsky_context_free/solve_equation", 2, "the shortest equation"),
        ("chomsky_context_sensitive/missing_duplicate", 5, "an even length"),
        ("chomsky_context_sensitive/binary_addition", 2, "at least 3 characters"),
        ("chomsky_context_sensitive/binary_multiplication", 1, "at least 3 characters"),
    ],
)
def test_a_length_that_a_task_does_not_have_is_refused(task, length, complaint):
    with pytest.raises(BadDefinition, match=complaint):
        instances(task, [length])
