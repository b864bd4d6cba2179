"""Easy-to-hard: train on rows that are easy by a stated measure, test on harder ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..assignment import Assignment
from ..measures.words import read_numeric_column
from ._conditions import draw_id_test

if TYPE_CHECKING:
    import pyarrow as pa


def threshold(table: pa.Table, *, field: str, easy_at_most: float, id_test: int, seed: str) -> Assignment:
    """Train on rows up to a difficulty, test on harder ones. Rows with `field` <= `easy_at_most` are easy: `id_test` of
    them, drawn by `seed`, are the in-distribution test and the others train; harder rows are `ood_test`. Severity is
    the field, and each value is a group.

    Parameters:
        field: the number field that measures difficulty.
        easy_at_most: the largest value that counts as easy.
        id_test: the number of easy rows in `id_test`.
    """
    hardness = read_numeric_column(table, field)
    easy = np.flatnonzero(hardness <= easy_at_most)
    part = np.full(table.num_rows, "ood_test", dtype="U8")
    part[easy] = "train"
    draw_id_test(part, easy, table["row_id"].to_numpy(), id_test, seed, f"have {field} <= {easy_at_most}")
    return Assignment(part=part, severity=hardness, group=hardness.astype(np.str_))
