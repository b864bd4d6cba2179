"""Length: train on short rows, test on long ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import count_words, group_by_word, read_numeric_column
from ._conditions import draw_id_test

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


def size_shift(
    table: pa.Table, *, field: str, train_share: float, test_share: float, id_test: int, seed: str
) -> Assignment:
    """Rows whose `field` is at most the quantile `train_share` train, except `id_test` of them drawn by `seed`; those
    at the quantile 1 - `test_share` or above are `ood_test`, and the rest are in no part. Severity is the field.

    The split of graphs by size of Yehudai et al. 2021 (arXiv 2010.08853): the smallest half trains, the largest tenth
    is the test. Rows of equal size stay together, so a share may be exceeded.

    Parameters:
        field: the number field that is the size.
        train_share: the share of the smallest rows, to train.
        test_share: the share of the largest rows, to test.
        id_test: the number of small rows in `id_test`.
    """
    sizes = read_numeric_column(table, field)
    ranked = np.sort(sizes)
    small, large = (ranked[int(share * len(ranked))] for share in (train_share, 1 - test_share))
    if not small < large:
        raise BadDefinition(f"{field}: training reaches {small}, and the test starts at {large}: give smaller shares")
    part = np.where(sizes >= large, "ood_test", "").astype("U8")
    near = np.flatnonzero(sizes <= small)
    part[near] = "train"
    draw_id_test(part, near, table["row_id"].to_numpy(), id_test, seed, f"have {field} <= {small}")
    return Assignment(part=part, severity=sizes)
