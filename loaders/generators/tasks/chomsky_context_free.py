"""Context-free tasks of the Chomsky hierarchy (Deletang et al., ICLR 2023, arXiv 2207.02098), for a stack.

The size is the length of the input in characters. The tasks are the paper's; the draws are new.
"""

from __future__ import annotations

import re

from ._contract import Draws, Examples, Tape, format_characters, format_numbers, require
from .chomsky_regular import MODULUS


def reverse_string(draws: Draws, length: int) -> Examples:
    """A string of 0 and 1, backwards."""
    string = draws.below("string", 2, length)
    return Examples(format_characters(string), format_characters(string[:, ::-1]))


def stack_manipulation(draws: Draws, length: int) -> Examples:
    """A stack of 0 and 1, bottom first, then operations on it: - pops (or does nothing to an empty stack), a pushes 0,
    b pushes 1. The output is the final stack, top first, followed by a full stop."""
    heights = (1 + draws.number("height", max(length - 1, 1))).tolist()
    stacks, actions = draws.below("stack", 2, length), draws.below("actions", 3, length)
    inputs, outputs = [], []
    for height, symbols, orders in zip(
        heights, format_characters(stacks), format_characters(actions, "-ab"), strict=True
    ):
        stack = list(symbols[:height])
        for order in orders[height:]:
            if order != "-":
                stack.append("0" if order == "a" else "1")
            elif stack:
                stack.pop()
        inputs.append(symbols[:height] + orders[height:])
        outputs.append("".join(reversed(stack)) + ".")
    return Examples(inputs, outputs)


def modular_arithmetic_brackets(draws: Draws, length: int) -> Examples:
    """The value modulo 5 of an expression with brackets, signs, +, - and *."""
    drawn = [_draw_expression(tape, length, "+-*") for tape in draws.tapes("expression")]
    return Examples([text for text, _ in drawn], format_numbers(value for _, value in drawn))


def solve_equation(draws: Draws, length: int) -> Examples:
    """The x for which an expression with brackets, signs, + and - has the given value modulo 5; `length` >= 3.

    Without products, x has the factor 1 or -1, so the solution is unique.
    """
    require(length >= 3, length, 'the shortest equation, such as "x=1", has 3 characters')
    equations, solutions = [], []
    for tape in draws.tapes("equation"):
        text, value = _draw_expression(tape, length - 2, "+-")
        digits = [match.start() for match in re.finditer(r"\d", text)]
        at = digits[tape.below(len(digits))]
        equations.append(f"{text[:at]}x{text[at + 1 :]}={value}")
        solutions.append(text[at])
    return Examples(equations, solutions)


def _draw_expression(tape: Tape, length: int, operators: str) -> tuple[str, int]:
    """An expression of exactly `length` characters and its value modulo 5: d, -d, (d), (-d) or (left operator right).

    Built with an explicit stack, since 500 characters may be nested deeper than Python's recursion limit.
    """
    values: list[tuple[str, int]] = []
    todo: list[int | str] = [length]
    while todo:
        task = todo.pop()
        if isinstance(task, str):
            right, left = values.pop(), values.pop()
            value = {"+": left[1] + right[1], "-": left[1] - right[1], "*": left[1] * right[1]}[task]
            values.append((f"({left[0]}{task}{right[0]})", value % MODULUS))
        elif task < 5:
            digit = tape.below(MODULUS)
            form, sign = (("{}", 1), ("-{}", -1), ("({})", 1), ("(-{})", -1))[task - 1]
            values.append((form.format(digit), sign * digit % MODULUS))
        else:
            left_length = 1 + tape.below(task - 4)
            # Last in, first out: the operator is applied once both sides are values.
            todo += [operators[tape.below(len(operators))], task - 3 - left_length, left_length]
    return values[0]
