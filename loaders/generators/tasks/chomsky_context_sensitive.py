"""Context-sensitive tasks of the Chomsky hierarchy (Deletang et al., ICLR 2023, arXiv 2207.02098), for a tape.

The size is the length of the input in characters. The tasks are the paper's; the draws are new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from operator import add, mul

import numpy as np

from ._contract import Draws, Examples, format_characters, require


def duplicate_string(draws: Draws, length: int) -> Examples:
    """A string of 0 and 1, twice."""
    string = format_characters(draws.below("string", 2, length))
    return Examples(string, [text * 2 for text in string])


def missing_duplicate(draws: Draws, length: int) -> Examples:
    """The missing symbol (_) in a string of 0 and 1 that is written twice; `length` is even."""
    require(length % 2 == 0, length, "a string written twice has an even length")
    twice = np.tile(draws.below("string", 2, length // 2), 2)
    gap = draws.number("gap", length)
    at = (np.arange(draws.rows), gap)
    missing = twice[at]
    twice[at] = 2
    return Examples(format_characters(twice, "01_"), format_characters(missing[:, None]))


def odds_first(draws: Draws, length: int) -> Examples:
    """The symbols of a string of 0 and 1 at odd positions (counted from 0), then those at even positions."""
    string = draws.below("string", 2, length)
    return Examples(
        format_characters(string), format_characters(np.concatenate([string[:, 1::2], string[:, ::2]], axis=1))
    )


def bucket_sort(draws: Draws, length: int) -> Examples:
    """A string over an ordered alphabet of five symbols, sorted."""
    string = draws.below("string", 5, length)
    return Examples(format_characters(string), format_characters(np.sort(string, axis=1)))


def compute_sqrt(draws: Draws, length: int) -> Examples:
    """The square root of a binary number (highest bit first), rounded down, in half as many digits, rounded up."""
    numbers = format_characters(draws.below("number", 2, length))
    width = (length + 1) // 2
    return Examples(numbers, [f"{isqrt(int(number, 2)):0{width}b}" for number in numbers])


def binary_addition(draws: Draws, length: int) -> Examples:
    """The sum of two binary numbers, all lowest bit first; `length` >= 3 includes the sign between them."""
    return _make_binary_examples(draws, length, add, "+")


def binary_multiplication(draws: Draws, length: int) -> Examples:
    """The product of two binary numbers, all lowest bit first; `length` >= 3 includes the sign between them."""
    return _make_binary_examples(draws, length, mul, "*")


def _make_binary_examples(draws: Draws, length: int, operate: Callable[[int, int], int], sign: str) -> Examples:
    """Draw two numbers of any lengths that fit, zero included; the result has no zeros after its highest bit."""
    require(length >= 3, length, "two numbers and the sign between them have at least 3 characters")
    signs_at: Sequence[int] = (1 + draws.number("sign", length - 2)).tolist()
    strings = format_characters(draws.below("digits", 2, length))
    inputs = [f"{text[:at]}{sign}{text[at + 1 :]}" for text, at in zip(strings, signs_at, strict=True)]
    outputs = []
    for text in inputs:
        left, right = (int(number[::-1], 2) for number in text.split(sign))
        outputs.append(f"{operate(left, right):b}"[::-1])
    return Examples(inputs, outputs)
