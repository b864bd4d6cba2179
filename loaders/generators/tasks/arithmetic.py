"""Arithmetic over long sequences of digits, in several surface formats of the same problems.

After Zhou et al., ICLR 2024 (arXiv 2310.16028), for addition, parity and their formats, and Kazemnejad et al., NeurIPS
2023 (arXiv 2305.19466), for sums and polynomials. The size is the number of digits, bits or terms. Neither paper
publishes its test sets; the draws are new.

An index hint is a token before each digit that marks its position; hints are consecutive and begin at a random position
of a fixed list, so that training on short sequences covers every hint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._contract import Draws, Examples, format_numbers, format_words, require

Digits = NDArray[np.int64]


@dataclass(frozen=True)
class _Sum:
    """Two numbers of `length` digits and their sum of `length` + 1, highest digit first, with leading zeros."""

    left: Digits
    right: Digits
    total: Digits
    carry_chain: NDArray[np.int64]

    def examples(self, inputs: Sequence[str], outputs: Sequence[str]) -> Examples:
        items = format_words(np.concatenate([self.left, self.right], axis=1))
        return Examples(inputs, outputs, items=items, meta={"carry_chain": self.carry_chain})


def addition(draws: Draws, length: int) -> Examples:
    """The sum of two numbers, highest digit first: its first digit depends on all digits of the input."""
    drawn = _draw_sum(draws, length)
    return drawn.examples(_format_sum(drawn), format_words(drawn.total))


def addition_reversed(draws: Draws, length: int) -> Examples:
    """`addition` with the sum's lowest digit first, the order in which carries are computed."""
    drawn = _draw_sum(draws, length)
    return drawn.examples(_format_sum(drawn), format_words(drawn.total[:, ::-1]))


def addition_hinted(draws: Draws, length: int, *, hints: int) -> Examples:
    """`addition` with an index hint before each digit, from a list of `hints`."""
    drawn = _draw_sum(draws, length)
    places = _draw_hints(draws, length + 1, hints)
    return drawn.examples(_format_hinted_sum(drawn, places), _format_hinted(places, drawn.total))


def addition_reversed_hinted(draws: Draws, length: int, *, hints: int) -> Examples:
    """`addition_reversed` with an index hint before each digit, from a list of `hints`."""
    drawn = _draw_sum(draws, length)
    places = _draw_hints(draws, length + 1, hints)
    return drawn.examples(_format_hinted_sum(drawn, places), _format_hinted(places[:, ::-1], drawn.total[:, ::-1]))


def parity(draws: Draws, length: int) -> Examples:
    """The number of ones among bits, modulo 2."""
    bits = draws.below("bits", 2, length)
    return Examples(format_words(bits), format_numbers(bits.sum(axis=1) % 2))


def parity_scratchpad(draws: Draws, length: int) -> Examples:
    """`parity`, with the parity of the bits up to each bit; the last one is the answer."""
    bits = draws.below("bits", 2, length)
    return Examples(format_words(bits), format_words(np.cumsum(bits, axis=1) % 2))


def parity_hinted_scratchpad(draws: Draws, length: int, *, hints: int) -> Examples:
    """`parity` with an index hint before each bit, and a scratchpad with the hint of every one and the parity so far;
    the answer follows "="."""
    bits = draws.below("bits", 2, length)
    places = _draw_hints(draws, length, hints)
    notes = []
    for row, names in zip(bits.tolist(), places.tolist(), strict=True):
        ones = [name for bit, name in zip(row, names, strict=True) if bit]
        steps = [f"i{name} {number % 2}" for number, name in enumerate(ones, start=1)]
        notes.append(" ".join([*steps, "=", str(len(ones) % 2)]))
    return Examples(_format_hinted(places, bits), notes, items=format_words(bits))


def modular_sum(draws: Draws, length: int, *, modulus: int) -> Examples:
    """The sum of numbers below `modulus`, modulo it."""
    numbers = draws.below("numbers", modulus, length)
    return Examples(
        [text.replace(" ", " + ") for text in format_words(numbers)], format_numbers(numbers.sum(axis=1) % modulus)
    )


def polynomial(draws: Draws, length: int) -> Examples:
    """The value modulo 10 of a sum of `length` terms c x ^ e, with c in -3 .. 3 and e in 0 .. 3, for an x in
    -2 .. 2."""
    x = draws.number("x", 5) - 2
    factors, exponents = draws.below("factors", 7, length) - 3, draws.below("exponents", 4, length)
    values = (factors * x[:, None] ** exponents).sum(axis=1) % 10
    inputs = [
        f"x = {at} : " + " + ".join(f"{c} x ^ {e}" for c, e in zip(row, powers, strict=True))
        for at, row, powers in zip(x.tolist(), factors.tolist(), exponents.tolist(), strict=True)
    ]
    return Examples(inputs, format_numbers(values))


def _draw_sum(draws: Draws, length: int) -> _Sum:
    """Draw two numbers. In half of the rows the digits of a range of positions sum to nine, so that a carry propagates:
    with independent digits, long carries are too rare to be learned or tested."""
    left, right = draws.below("left", 10, length), draws.below("right", 10, length)
    start = draws.number("start", length)
    stop = np.where(draws.number("stretch", 2) == 1, start + 1 + draws.number("reach", length - start), start)
    positions = np.arange(length)
    right = np.where((positions >= start[:, None]) & (positions < stop[:, None]), 9 - left, right)
    total = np.zeros((draws.rows, length + 1), np.int64)
    carry, run, longest = (np.zeros(draws.rows, np.int64) for _ in range(3))
    for at in range(length - 1, -1, -1):
        column = left[:, at] + right[:, at] + carry
        total[:, at + 1], carry = column % 10, column // 10
        run = (run + 1) * carry
        longest = np.maximum(longest, run)
    total[:, 0] = carry
    return _Sum(left, right, total, longest)


def _format_sum(drawn: _Sum) -> list[str]:
    return [
        f"{left} + {right}" for left, right in zip(format_words(drawn.left), format_words(drawn.right), strict=True)
    ]


def _format_hinted_sum(drawn: _Sum, hints: Digits) -> list[str]:
    left, right = _format_hinted(hints[:, 1:], drawn.left), _format_hinted(hints[:, 1:], drawn.right)
    return [f"{first} + {second}" for first, second in zip(left, right, strict=True)]


def _draw_hints(draws: Draws, width: int, supply: int) -> Digits:
    """Return consecutive hints, shape (rows, width), from a random position of the list on."""
    require(width <= supply, width, f"there are {supply} index hints")
    return draws.number("hint", supply - width + 1)[:, None] + np.arange(width)


def _format_hinted(hints: Digits, values: Digits) -> list[str]:
    """Put its hint before each value, such as "i17 3 i18 5"."""
    return [
        " ".join([f"i{hint} {value}" for hint, value in zip(*row, strict=True)])
        for row in zip(hints.tolist(), values.tolist(), strict=True)
    ]
