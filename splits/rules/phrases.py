"""Compositional: a phrase is held out of training, as in SCAN's templates, fillers and multi-word primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import count_occurrences, group_by_word, read_text_column

if TYPE_CHECKING:
    import pyarrow as pa


def held_out(
    table: pa.Table,
    *,
    field: str,
    phrases: list[str],
    dropped: list[str] | None = None,
    untrained: list[str] | None = None,
    group_words: list[str] | None = None,
) -> Assignment:
    """Rows whose `field` contains one of `phrases` are `ood_test`, the others train; severity counts the phrases.

    Rows with one of `dropped` are dropped; rows with one of `untrained` and none of `phrases` are not in training.
    This is how the templates and fillers of Loula, Baroni and Lake 2018 (arXiv 1807.07545) were published: `turn around
    right`, for instance, is in neither the training nor the test file of `around right`.

    Parameters:
        field: the text field; phrases match whole words.
        phrases: the held-out phrases.
        dropped: phrases whose rows are dropped.
        untrained: phrases whose rows are not in training.
    """
    counted = _count_phrases(table, field, phrases)
    part = np.where(counted > 0, "ood_test", "train")
    part[(counted == 0) & (_count_phrases(table, field, untrained or []) > 0)] = ""
    part[_count_phrases(table, field, dropped or []) > 0] = ""
    return Assignment(part=part, severity=counted, group=group_by_word(table, group_words))


def alone_in_training(
    table: pa.Table, *, field: str, phrase: str, weight: int = 1, group_words: list[str] | None = None
) -> Assignment:
    """Train on `phrase` alone and on all rows without it; every row that combines it with other words is `ood_test`.

    `weight` is the number of copies of the bare phrase in the published training file (2,189 for `turn left` in SCAN's
    addprim_turn_left: 10 % of its lines; Lake and Baroni 2018, arXiv 1711.00350). Severity counts the phrase in test
    rows, and is 0 in training.

    Parameters:
        field: the text field.
        phrase: the phrase, such as `turn left`.
        weight: the number of published copies of the bare phrase.
    """
    import pyarrow.compute as pc

    bare = pc.equal(read_text_column(table, field), phrase).to_numpy(zero_copy_only=False)
    if bare.sum() != 1:
        raise BadDefinition(f"{int(bare.sum())} rows of {field!r} are the bare phrase {phrase!r}; one is needed")
    counted = np.where(bare, 0, _count_phrases(table, field, [phrase]))
    return Assignment(
        part=np.where(counted > 0, "ood_test", "train"),
        weight=np.where(bare, weight, 1).astype(np.int64),
        severity=counted,
        group=group_by_word(table, group_words),
    )


def _count_phrases(table: pa.Table, field: str, phrases: list[str]) -> NDArray[np.int64]:
    """Count the phrases in each row, as whole words; an error if one of them occurs nowhere."""
    counts = np.zeros(table.num_rows, np.int64)
    for phrase in phrases:
        # Words are searched in a text with doubled spaces.
        phrase_counts = count_occurrences(table, field, phrase.replace(" ", "  "))
        if not phrase_counts.any():
            raise BadDefinition(f"no row of {field!r} contains the phrase {phrase!r}")
        counts += phrase_counts
    return counts
