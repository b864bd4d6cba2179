"""The inputs and outputs of a task: draws and examples, and their format as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....core.draws import draw_bits
from ....core.errors import BadDefinition

_PLACES = 20
"""Each row has 2^20 positions in every named stream of draws."""


@dataclass(frozen=True)
class Draws:
    """The randomness of `rows` instances. Each number is a function of only (stream, name, row, position), so the first
    rows do not depend on the number of rows or the width."""

    stream: str
    rows: int

    def bits(self, name: str, width: int) -> NDArray[np.uint64]:
        """64 random bits per row and position, shape (rows, width)."""
        rows, places = np.arange(self.rows, dtype=np.uint64), np.arange(width, dtype=np.uint64)
        return draw_bits(f"{self.stream}/{name}", (rows << np.uint64(_PLACES))[:, None] + places)

    def below(self, name: str, bound: int | NDArray[np.int64], width: int = 1) -> NDArray[np.int64]:
        """Whole numbers in [0, bound), shape (rows, width); an array of bounds is broadcast, each <= 2^31."""
        high = self.bits(name, width) >> np.uint64(32)
        return (high * np.asarray(bound, np.uint64) >> np.uint64(32)).astype(np.int64)

    def number(self, name: str, bound: int | NDArray[np.int64]) -> NDArray[np.int64]:
        """One whole number in [0, bound) per row, shape (rows,); `bound` may have that shape too."""
        return self.below(name, np.asarray(bound, np.int64).reshape(-1, 1))[:, 0]

    def permutations(self, name: str, count: int) -> NDArray[np.int64]:
        """A permutation of 0 .. count - 1 for each row, shape (rows, count)."""
        return np.argsort(self.bits(name, count), axis=1, kind="stable")

    def tapes(self, name: str) -> Iterator[Tape]:
        """An unlimited tape of draws for each row, for instances that are built step by step."""
        for row in range(self.rows):
            yield Tape(f"{self.stream}/{name}", row)


class Tape:
    """The draws of one row, read sequentially."""

    _AHEAD = 64

    def __init__(self, stream: str, row: int) -> None:
        self._stream, self._next = stream, row << _PLACES
        self._ready: list[int] = []

    def below(self, bound: int) -> int:
        """The next whole number in [0, bound); bound <= 2^31."""
        if not self._ready:
            counters = np.arange(self._next, self._next + self._AHEAD, dtype=np.uint64)
            self._ready = draw_bits(self._stream, counters)[::-1].tolist()
            self._next += self._AHEAD
        return (self._ready.pop() >> 32) * bound >> 32

    def shuffled(self, values: Sequence[Any]) -> list[Any]:
        """`values` in a drawn order (Fisher and Yates)."""
        order = list(values)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


@dataclass(frozen=True)
class Examples:
    """The examples that a task makes of its draws, one entry per row in every field.

    `items` must be distinct in a source, and is the input by default; a task with several surface formats gives the
    problem behind them, so that every format selects the same draws. `is_valid` is false for draws that are not
    instances of the task. `meta` has further columns (a depth, a carry chain).
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    items: Sequence[str] | None = None
    is_valid: NDArray[np.bool_] | None = None
    meta: Mapping[str, NDArray[Any] | Sequence[Any]] = field(default_factory=dict)


def require(fits: bool, size: int, what: str) -> None:
    """Raise `BadDefinition` unless the task has instances of a size; `what` says which sizes it has."""
    if not fits:
        raise BadDefinition(f"sizes: the task has no instances of size {size}: {what}")


def make_traced_examples(
    inputs: Sequence[str], answers: Sequence[str], steps: Sequence[Sequence[str]], trace: bool
) -> Examples:
    """Make examples with the answers alone, or after their steps: "step ; step = answer"."""
    if not trace:
        return Examples(inputs, answers)
    return Examples(
        inputs, [f"{' ; '.join(row_steps)} = {answer}" for row_steps, answer in zip(steps, answers, strict=True)]
    )


def format_characters(values: NDArray[np.int64], alphabet: str = "0123456789") -> list[str]:
    """Format each row of `values`, shape (rows, width) with width >= 1, as `width` letters of `alphabet`."""
    letters = np.ascontiguousarray(np.array(list(alphabet))[values])
    text: list[str] = letters.view(f"U{values.shape[1]}").ravel().tolist()
    return text


def format_words(values: NDArray[np.int64]) -> list[str]:
    """Format each row of `values` as numbers separated by spaces."""
    return [" ".join(map(str, row)) for row in values.tolist()]


def format_numbers(values: Iterable[int]) -> list[str]:
    """Format one number per row as text."""
    return [str(value) for value in values]
