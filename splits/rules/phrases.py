"""Compositional: a phrase is held out of training. The rules of SCAN's templates, fillers and multi-word primitives."""

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
    """Rows whose `field` holds one of `phrases` are `ood_test`, the others train; severity counts the phrases.

    Rows that hold one of `dropped` are in no part; rows that hold one of `untrained` and none of `phrases` are not in
    training. So are the templates and fillers of Loula, Baroni and Lake 2018 (arXiv 1807.07545) published: `turn around
    right`, say, stands neither in the training nor in the test file of `around right`.

    Parameters:
        field: the text in which phrases stand, as whole words.
        phrases: the phrases that are held out.
        dropped: phrases whose rows are in no part.
        untrained: phrases whose rows do not train.
    """
    counted = _count_phrases(table, field, phrases)
    part = np.where(counted > 0, "ood_test", "train")
    part[(counted == 0) & (_count_phrases(table, field, untrained or []) > 0)] = ""
    part[_count_phrases(table, field, dropped or []) > 0] = ""
    return Assignment(part=part, severity=counted, group=group_by_word(table, group_words))


def alone_in_training(
    table: pa.Table, *, field: str, phrase: str, weight: int = 1, group_words: list[str] | None = None
) -> Assignment:
    """Train on `phrase` standing alone and on all rows without it; every row that combines it is `ood_test`.

    `weight` is the number of copies in which the published training file repeats the bare phrase (2,189 for `turn left`
    in SCAN's addprim_turn_left: 10 % of its lines; Lake and Baroni 2018, arXiv 1711.00350). Severity counts the
    phrase where it is combined, and is 0 in training.

    Parameters:
        field: the text in which the phrase stands.
        phrase: the phrase, such as `turn left`.
        weight: in how many copies the bare phrase was published.
    """
    import pyarrow.compute as pc

    bare = pc.equal(read_text_column(table, field), phrase).to_numpy(zero_copy_only=False)
    if bare.sum() != 1:
        raise BadDefinition(f"the bare phrase {phrase!r} stands in {int(bare.sum())} rows of {field!r}; one is needed")
    counted = np.where(bare, 0, _count_phrases(table, field, [phrase]))
    return Assignment(
        part=np.where(counted > 0, "ood_test", "train"),
        weight=np.where(bare, weight, 1).astype(np.int64),
        severity=counted,
        group=group_by_word(table, group_words),
    )


def _count_phrases(table: pa.Table, field: str, phrases: list[str]) -> NDArray[np.int64]:
    """How often the phrases stand in each row, as whole words; an error where one of them stands nowhere."""
    counts = np.zeros(table.num_rows, np.int64)
    for phrase in phrases:
        # Words are searched for in a text whose spaces are doubled.
        phrase_counts = count_occurrences(table, field, phrase.replace(" ", "  "))
        if not phrase_counts.any():
            raise BadDefinition(f"no row of {field!r} holds the phrase {phrase!r}")
        counts += phrase_counts
    return counts
