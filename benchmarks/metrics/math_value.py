"""Math value: the share of rows whose answer has the value of the expected one.

Two answers match if `math_match` finds them equal, or if both are numbers, or lists, tuples, sets or matrices of
numbers, that are equal: 0.5 is \\frac{1}{2}, 2\\sqrt{2} is \\sqrt{8}, and x = 3 is 3, as with the check of Lewkowycz et
al., "Solving quantitative reasoning problems with language models" (NeurIPS 2022, arXiv:2206.14858, appendix), which
takes what follows the last = and asks a computer algebra system whether the difference is 0. Here a parser of 100
lines reads numbers, + - * / ^, fractions, roots, \\pi, e and i, and nothing of an answer is run. Rational numbers are
compared exactly, others to a relative difference of 1e-9, so that a rounded decimal is not a root. Answers with
variables match only as texts.

A set matches in any order; brackets may differ only where one answer has none.
"""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ._base import Answers, Floats, Task, Values, expect_zero
from .math_match import normalise

VERSION = 1
TASKS = ("sequence",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
chance = expect_zero

_LONGEST, _DEEPEST, _LARGEST_BITS = 2000, 80, 4096
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\[{}\\]|[0-9]+(?:\.[0-9]*)?|\.[0-9]+|sqrt|pi|[-+*/^(){}\[\],;&ei]|−|π|√")
_CONSTANTS = {"\\pi": math.pi, "pi": math.pi, "π": math.pi, "e": math.e, "i": 1j}
_PRODUCTS = ("*", "\\cdot", "\\times")
_CLOSING = {"(": ")", "[": "]", "\\{": "\\}", "{": "}"}
_MATRIX = re.compile(r"\\begin{([a-z]?matrix|array)}(?:{[lcr|]*})?(.*)\\end{\1}")

Number = Fraction | complex
Value = Number | tuple[str, list["Value"]]
"""A number, or an opening bracket ("" for none) and what follows it."""


def per_row(answers: Answers, truth: Values, task: Task) -> Floats:
    """1 if the answers are equal as texts or in value, else 0; shape (rows,). A missing answer never matches."""
    pairs = zip(answers.prediction, truth, strict=True)
    return np.array([given is not None and is_equal_answer(str(given), str(true)) for given, true in pairs], np.float64)


def is_equal_answer(given: str, true: str) -> bool:
    """Whether two answers are the same text after `math_match`'s clean-up, or have the same value."""
    if normalise(given) == normalise(true):
        return True
    left, right = read_value(given), read_value(true)
    return left is not None and right is not None and _is_equal(left, right)


def read_value(text: str) -> Value | None:
    """The value of an answer; None if it is none that this can read."""
    if len(text) > _LONGEST:
        return None
    text = normalise(text.rpartition("=")[2].replace("\\\\", ";"))
    matrix = _MATRIX.fullmatch(text)
    try:
        if not matrix:
            return _read_all(text)
        rows: list[Value] = [("", [_read_all(cell) for cell in row.split("&")]) for row in matrix[2].split(";") if row]
        return ("", rows)
    except (ValueError, ArithmeticError):
        return None


def _is_equal(left: Value, right: Value) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        if len(left[1]) != len(right[1]) or (left[0] != right[0] and left[0] and right[0]):
            return False
        if "\\{" not in (left[0], right[0]):
            return all(_is_equal(a, b) for a, b in zip(left[1], right[1], strict=True))
        rest = list(right[1])
        for item in left[1]:
            match = next((index for index, other in enumerate(rest) if _is_equal(item, other)), None)
            if match is None:
                return False
            del rest[match]
        return True
    if isinstance(left, tuple) or isinstance(right, tuple):
        return False
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left == right
    return cmath.isclose(complex(left), complex(right), rel_tol=1e-9, abs_tol=1e-12)


def _read_all(text: str) -> Value:
    parser = _Parser(text)
    value = parser.read_list("", "")
    if isinstance(value, tuple) and len(value[1]) == 1:
        return value[1][0]
    return value


def _bound_depth(read: Callable[[_Parser], Value]) -> Callable[[_Parser], Value]:
    def read_bounded(self: _Parser) -> Value:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError("too deep")
        value = read(self)
        self.depth -= 1
        return value

    return read_bounded


class _Parser:
    """A recursive-descent parser of one answer; `ValueError` or `ArithmeticError` for what is no value."""

    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        if "".join(self.tokens) != text or not text:
            raise ValueError(f"no value: {text[:40]!r}")
        self.at = self.depth = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *tokens: str) -> str:
        """The next token if it is one of `tokens`, else ""."""
        token = self.peek()
        if not token or token not in tokens:
            return ""
        self.at += 1
        return token

    def read_list(self, opening: str, closing: str) -> Value:
        """Values between commas, up to `closing`."""
        values = [self.read_sum()]
        while self.take(",", ";"):
            values.append(self.read_sum())
        if self.peek() != closing:
            raise ValueError(f"{self.peek()!r} where {closing!r} is due")
        self.at += 1
        return (opening, values)

    def read_sum(self) -> Value:
        value = self.read_product()
        while sign := self.take("+", "-", "−"):
            other = _get_number(self.read_product())
            value = _get_number(value) + (other if sign == "+" else -other)
        return value

    def read_product(self) -> Value:
        value = self.read_power()
        while True:
            if self.take(*_PRODUCTS):
                value = _multiply(_get_number(value), _get_number(self.read_power()))
            elif self.take("/", "\\div"):
                value = _divide(_get_number(value), _get_number(self.read_power()))
            elif self.peek() in ("(", "{", "\\frac", "\\sqrt", "sqrt", "√", *_CONSTANTS):
                value = _multiply(_get_number(value), _get_number(self.read_power()))
            else:
                return value

    @_bound_depth
    def read_power(self) -> Value:
        if sign := self.take("+", "-", "−"):
            value = self.read_power()
            return value if sign == "+" else -_get_number(value)
        value = self.read_atom()
        if self.take("^"):
            return _raise_to(_get_number(value), _get_number(self.read_power()))
        return value

    @_bound_depth
    def read_atom(self) -> Value:
        token = self.peek()
        self.at += 1
        if token == "\\frac":
            return _divide(_get_number(self.read_atom()), _get_number(self.read_atom()))
        if token in ("\\sqrt", "sqrt", "√"):
            root = _get_number(self.unwrap(self.read_list("[", "]"))) if self.take("[") else Fraction(2)
            return _raise_to(_get_number(self.read_atom()), _divide(Fraction(1), root))
        if token in _CONSTANTS:
            return complex(_CONSTANTS[token])
        if token in _CLOSING:
            value = self.read_list(token, _CLOSING[token])
            return self.unwrap(value) if token in ("(", "{") else value
        return Fraction(token)

    def unwrap(self, value: Value) -> Value:
        """What stands in brackets alone."""
        return value[1][0] if isinstance(value, tuple) and len(value[1]) == 1 else value


def _get_number(value: Value) -> Number:
    if isinstance(value, tuple):
        raise ValueError("a list where a number is due")
    return value


def _multiply(left: Number, right: Number) -> Number:
    return (
        left * right if isinstance(left, Fraction) and isinstance(right, Fraction) else complex(left) * complex(right)
    )


def _divide(left: Number, right: Number) -> Number:
    return (
        left / right if isinstance(left, Fraction) and isinstance(right, Fraction) else complex(left) / complex(right)
    )


def _raise_to(base: Number, exponent: Number) -> Number:
    """base ^ exponent, exact for whole exponents and for roots of perfect powers, of a bounded size."""
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if exponent.denominator == 1:
            if bits * abs(exponent.numerator) > _LARGEST_BITS:
                raise ValueError("too large")
            return base**exponent.numerator
        if exponent == Fraction(1, 2) and base >= 0:
            roots = math.isqrt(base.numerator), math.isqrt(base.denominator)
            if roots[0] ** 2 == base.numerator and roots[1] ** 2 == base.denominator:
                return Fraction(*roots)
    return complex(base) ** complex(exponent)
