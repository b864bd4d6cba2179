"""Formatting of arrays of symbols as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def format_characters(values: NDArray[np.int64], alphabet: str = "0123456789") -> list[str]:
    """Format each row of `values`, shape (rows, width) with width >= 1, as `width` letters of `alphabet`."""
    letters = np.ascontiguousarray(np.array(list(alphabet))[values])
    text: list[str] = letters.view(f"U{values.shape[1]}").ravel().tolist()
    return text


def format_words(values: NDArray[np.int64], vocabulary: Sequence[str] | None = None) -> list[str]:
    """Format each row of `values` as words separated by spaces: the numbers, or words of `vocabulary`."""
    if vocabulary is None:
        return [" ".join(map(str, row)) for row in values.tolist()]
    return [" ".join([vocabulary[value] for value in row]) for row in values.tolist()]


def format_numbers(values: Iterable[int]) -> list[str]:
    """Format one number per row as text."""
    return [str(value) for value in values]
