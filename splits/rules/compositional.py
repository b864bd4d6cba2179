"""Compositional: every word occurs in training, some combinations do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..assignment import Assignment
from ..measures.words import count_occurrences
from .phrases import alone_in_training

if TYPE_CHECKING:
    import pyarrow as pa


def held_out_primitive(
    table: pa.Table, *, field: str, word: str, weight: int = 1, group_words: list[str] | None = None
) -> Assignment:
    """Train on `word` alone and on all rows without it; every row that combines it with other words is `ood_test`.

    `weight` is the number of copies of the bare word in the published training file (1,467 for `jump` in SCAN's
    addprim_jump: 10 % of its lines; Lake and Baroni 2018, arXiv 1711.00350). Severity counts the word.

    Parameters:
        field: the text field.
        word: the primitive, such as `jump`.
        weight: the number of published copies of the bare word.
    """
    outcome = alone_in_training(table, field=field, phrase=word, weight=weight, group_words=group_words)
    outcome.severity = count_occurrences(table, field, word)
    return outcome
