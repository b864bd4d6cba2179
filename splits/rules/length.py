"""Length: train on short rows, test on long ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..assignment import Assignment
from ..measures.words import count_words, group_by_word

if TYPE_CHECKING:
    import pyarrow as pa


def threshold(table: pa.Table, *, field: str, at_most: int, group_words: list[str] | None = None) -> Assignment:
    """Rows whose `field` has at most `at_most` words train, the others are `ood_test`; severity is the length.

    This is the rule of SCAN's length split (Lake and Baroni 2018, arXiv 1711.00350): output length <= 22.

    Parameters:
        field: the text field whose space-separated words are counted.
        at_most: the largest length that trains, in words.
    """
    lengths = count_words(table, field)
    return Assignment(
        part=np.where(lengths <= at_most, "train", "ood_test"),
        severity=lengths,
        group=group_by_word(table, group_words),
    )
