"""ListOps: nested list operations over digits (Nangia and Bowman 2018, NAACL SRW, arXiv 1804.06028).

Operators: MAX, MIN, MED (the median, rounded down) and SM (the sum modulo 10). The published generator has no seed; the
draws are new, and their depth is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ._contract import Draws, Examples, Tape, format_numbers

OPERATORS = ("MAX", "MED", "MIN", "SM")


@dataclass
class _Expression:
    tokens: list[str] = field(default_factory=list)
    nestings: set[str] = field(default_factory=set)
    """The direct nestings of operators, such as "MAX>SM"."""


def nested(draws: Draws, depth: int, *, arguments: int) -> Examples:
    """An expression of exactly `depth` nested operators, each with 2 to `arguments` arguments.

    One argument of every operator is one level shallower than it; a third of the others are shallow expressions, and
    the rest are digits. Further columns: `tokens`, the number of words; `nestings`, the distinct pairs of operators
    with the second directly inside the first, sorted.
    """
    inputs, values, tokens, nestings = [], [], [], []
    for tape in draws.tapes("expression"):
        expression = _Expression()
        values.append(_grow_expression(expression, tape, depth, arguments, ""))
        inputs.append(" ".join(expression.tokens))
        tokens.append(len(expression.tokens))
        nestings.append(" ".join(sorted(expression.nestings)))
    return Examples(inputs, format_numbers(values), meta={"tokens": tokens, "nestings": nestings})


def _grow_expression(expression: _Expression, tape: Tape, depth: int, arguments: int, parent: str) -> int:
    """Write a sub-expression of this depth (0 is a digit) and return its value."""
    if depth == 0:
        digit = tape.below(10)
        expression.tokens.append(str(digit))
        return digit
    operator = OPERATORS[tape.below(len(OPERATORS))]
    if parent:
        expression.nestings.add(f"{parent}>{operator}")
    expression.tokens.append(f"[{operator}")
    count = 2 + tape.below(arguments - 1)
    deepest = tape.below(count)
    values = []
    for index in range(count):
        shallow = min(depth - 1, 1) if tape.below(3) == 0 else 0
        below = depth - 1 if index == deepest else shallow
        values.append(_grow_expression(expression, tape, below, arguments, operator))
    expression.tokens.append("]")
    return _APPLY[operator](values)


def _compute_median(values: list[int]) -> int:
    """Return the middle value, or the mean of the two middle ones, rounded down."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2


_APPLY: dict[str, Callable[[list[int]], int]] = {
    "MAX": max,
    "MED": _compute_median,
    "MIN": min,
    "SM": lambda values: sum(values) % 10,
}
