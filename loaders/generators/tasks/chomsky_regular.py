"""Regular tasks of the Chomsky hierarchy (Deletang et al., ICLR 2023, arXiv 2207.02098), for a finite automaton.

The size is the length of the input in characters. The tasks are the paper's; the draws are new.
"""

from __future__ import annotations

import numpy as np

from ._contract import Draws, Examples, format_characters, format_numbers, require

MODULUS = 5


def even_pairs(draws: Draws, length: int) -> Examples:
    """Whether the number of unequal neighbours in a string of 0 and 1 is even (0) or odd (1)."""
    string = draws.below("string", 2, length)
    return Examples(format_characters(string), format_numbers((string[:, 1:] != string[:, :-1]).sum(axis=1) % 2))


def parity_check(draws: Draws, length: int) -> Examples:
    """The number of ones in a string of 0 and 1, modulo 2."""
    string = draws.below("string", 2, length)
    return Examples(format_characters(string), format_numbers(string.sum(axis=1) % 2))


def cycle_navigation(draws: Draws, length: int) -> Examples:
    """The end of a walk of steps - (back), = (stay) and + (forward) from position 0 of a cycle of five positions."""
    steps = draws.below("steps", 3, length)
    return Examples(format_characters(steps, "-=+"), format_numbers((steps - 1).sum(axis=1) % MODULUS))


def modular_arithmetic(draws: Draws, length: int) -> Examples:
    """The value modulo 5 of digits joined by +, - and *, with precedence of *; `length` is odd."""
    require(length % 2 == 1, length, "digits and the signs between them are odd in number")
    digits = draws.below("digits", MODULUS, length // 2 + 1)
    operators = draws.below("operators", 3, length // 2)
    text = np.empty((draws.rows, length), np.int64)
    text[:, ::2], text[:, 1::2] = digits, operators + MODULUS
    total = np.zeros(draws.rows, np.int64)
    term = digits[:, 0]
    for index in range(length // 2):
        operator, digit = operators[:, index], digits[:, index + 1]
        total = np.where(operator == 2, total, total + term) % MODULUS
        term = np.choose(operator, [digit, -digit, term * digit]) % MODULUS
    return Examples(format_characters(text, "01234+-*"), format_numbers((total + term) % MODULUS))
