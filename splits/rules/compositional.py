"""Compositional: every word occurs in training, some combinations do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import count_occurrences, group_by_word, read_text_column

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
    import pyarrow.compute as pc

    bare = pc.equal(read_text_column(table, field), word).to_numpy(zero_copy_only=False)
    if bare.sum() != 1:
        raise BadDefinition(f"{int(bare.sum())} rows of {field!r} are the bare word {word!r}; one is needed")
    count = count_occurrences(table, field, word)
    held_out = (count > 0) & ~bare
    return Assignment(
        part=np.where(held_out, "ood_test", "train"),
        weight=np.where(bare, weight, 1).astype(np.int64),
        severity=count,
        group=group_by_word(table, group_words),
    )
