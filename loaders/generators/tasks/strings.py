"""Sequence tasks that move, count and compare tokens.

After Zhou et al., ICLR 2024 (arXiv 2310.16028), and Kazemnejad et al., NeurIPS 2023 (arXiv 2305.19466). The size is the
number of tokens in the sequence. Neither paper publishes its test sets; the draws are new.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._contract import Draws, Examples, format_characters, format_words, require

_LETTERS = "abcdefghij"


def copy(draws: Draws, length: int, *, symbols: int) -> Examples:
    """A copy of a sequence of numbers below `symbols`. Repeats make it hard to keep track of the position."""
    sequence = format_words(draws.below("sequence", symbols, length))
    return Examples(sequence, sequence)


def copy_distinct(draws: Draws, length: int, *, symbols: int) -> Examples:
    """A copy of a sequence of different numbers below `symbols`: each token determines the next."""
    require(length <= symbols, length, f"there are {symbols} different numbers")
    sequence = format_words(draws.permutations("sequence", symbols)[:, :length])
    return Examples(sequence, sequence)


def reverse(draws: Draws, length: int, *, symbols: int) -> Examples:
    """A sequence of numbers below `symbols`, backwards."""
    sequence = draws.below("sequence", symbols, length)
    return Examples(format_words(sequence), format_words(sequence[:, ::-1]))


def sort_distinct(draws: Draws, length: int, *, symbols: int) -> Examples:
    """Different numbers below `symbols`, each one token, in ascending order."""
    require(length <= symbols, length, f"there are {symbols} different numbers")
    sequence = draws.permutations("sequence", symbols)[:, :length]
    return Examples(format_words(sequence), format_words(np.sort(sequence, axis=1)))


def sort_digits(draws: Draws, length: int) -> Examples:
    """Numbers of one to four digits, in ascending order: comparing them requires reading their digits."""
    magnitude = 10 ** (1 + draws.below("digits", 4, length))
    sequence = draws.below("sequence", magnitude, length)
    return Examples(format_words(sequence), format_words(np.sort(sequence, axis=1)))


def count(draws: Draws, length: int, *, symbols: int) -> Examples:
    """The first and the last of `length` consecutive numbers below `symbols`; the output is all of them."""
    require(length <= symbols, length, f"there are {symbols} different numbers")
    first = draws.number("first", symbols - length + 1)
    numbers = first[:, None] + np.arange(length)
    return Examples(format_words(numbers[:, [0, -1]]), format_words(numbers))


def mode(draws: Draws, length: int) -> Examples:
    """The most frequent letter in a sequence over ten letters; it is unique."""
    sequence, counts = _draw_letters(draws, length)
    winners = counts.argmax(axis=1)
    return Examples(
        format_characters(sequence, _LETTERS),
        format_characters(winners[:, None], _LETTERS),
        is_valid=_has_one_winner(counts),
    )


def mode_scratchpad(draws: Draws, length: int) -> Examples:
    """`mode` with a scratchpad: the letters sorted into runs, in alphabetical order.

    Runs are used instead of counts, whose digits would not all occur for short sequences."""
    sequence, counts = _draw_letters(draws, length)
    outputs = []
    for row in counts.tolist():
        runs = " ".join(letter * number for letter, number in zip(_LETTERS, row, strict=True) if number)
        outputs.append(f"{runs} {_LETTERS[row.index(max(row))]}")
    return Examples(format_characters(sequence, _LETTERS), outputs, is_valid=_has_one_winner(counts))


def _draw_letters(draws: Draws, length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw sequences of letters, shape (rows, length), and count each letter in them, shape (rows, 10)."""
    sequence = draws.below("sequence", len(_LETTERS), length)
    return sequence, (sequence[:, :, None] == np.arange(len(_LETTERS))).sum(axis=1)


def _has_one_winner(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    ordered = np.sort(counts, axis=1)
    unique: NDArray[np.bool_] = ordered[:, -1] > ordered[:, -2]
    return unique


def last_letters(draws: Draws, length: int) -> Examples:
    """The last letters of `length` words, concatenated (Wei et al. 2022, arXiv 2201.11903). Their words are
    names; these are three to seven letters drawn at random."""
    letters, sizes = draws.below("letters", 26, 7 * length), 3 + draws.below("sizes", 5, length)
    inputs, outputs = [], []
    for row, own_sizes in zip(letters.reshape(-1, length, 7).tolist(), sizes.tolist(), strict=True):
        words = ["".join(chr(97 + letter) for letter in word[:size]) for word, size in zip(row, own_sizes, strict=True)]
        inputs.append(" ".join(words))
        outputs.append("".join(word[-1] for word in words))
    return Examples(inputs, outputs)
