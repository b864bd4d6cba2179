"""Easy-to-hard with a gap: easy rows train, hard rows are the test, and the rows between are a validation part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import read_names, read_numeric_column
from ._conditions import Conditions, draw_id_test, match_conditions

if TYPE_CHECKING:
    import pyarrow as pa

Hardness = NDArray[np.int64] | NDArray[np.float64]


def drawn(
    table: pa.Table,
    *,
    field: str,
    easy_at_most: float,
    hard_at_least: float,
    id_test: int,
    seed: str,
    only: Conditions | None = None,
    group: str | None = None,
) -> Assignment:
    """Train on easy rows, test on hard ones. Rows with `field` <= `easy_at_most` are easy: `id_test` of them, drawn by
    `seed`, are the in-distribution test and the others train. Rows with `field` >= `hard_at_least` are `ood_test`,
    those between `ood_val`.

    Severity is the field. Rows that do not meet the conditions `only` are dropped. The groups are the values of
    `group`.

    Parameters:
        field: the number field with the grade.
        easy_at_most: the highest grade that trains.
        hard_at_least: the lowest grade in `ood_test`.
        id_test: the number of easy rows in `id_test`.
        only: the allowed values of each field.
        group: the text field whose values are the groups.
    """
    hardness = read_numeric_column(table, field)
    part = _grade_rows(hardness, easy_at_most, hard_at_least, field)
    part[~match_conditions(table, only or {})] = ""
    easy = np.flatnonzero(part == "train")
    draw_id_test(part, easy, table["row_id"].to_numpy(), id_test, seed, f"have {field} <= {easy_at_most}")
    named = None if group is None else read_names(table, group)
    return Assignment(part=part, severity=hardness, group=named)


def published(
    table: pa.Table, *, field: str, easy_at_most: float, hard_at_least: float, part: str, train: str, test: str
) -> Assignment:
    """Train on the easy rows of the published training part, test on the published test part. In the published test
    part, easy rows (`field` <= `easy_at_most`) are `id_test`, those with `field` >= `hard_at_least` `ood_test`, those
    between `ood_val`.

    Harder rows of the published training part are dropped, so that no published training row is tested. Severity is
    `field`.

    Parameters:
        field: the number field with the grade.
        easy_at_most: the highest grade that trains.
        hard_at_least: the lowest grade in `ood_test`.
        part: the field with the published part of a row.
        train: its value for training rows.
        test: its value for test rows.
    """
    hardness = read_numeric_column(table, field)
    graded = _grade_rows(hardness, easy_at_most, hard_at_least, field)
    trained, tested = match_conditions(table, {part: [train]}), match_conditions(table, {part: [test]})
    easy = graded == "train"
    assigned = np.where(trained & easy, "train", np.where(tested, np.where(easy, "id_test", graded), ""))
    return Assignment(part=assigned, severity=hardness)


def _grade_rows(hardness: Hardness, easy_at_most: float, hard_at_least: float, field: str) -> NDArray[np.str_]:
    """Return train, ood_val or ood_test for each row, by its grade alone."""
    if not easy_at_most < hard_at_least:
        raise BadDefinition(f"{field}: easy_at_most = {easy_at_most} must lie below hard_at_least = {hard_at_least}")
    return np.where(hardness <= easy_at_most, "train", np.where(hardness >= hard_at_least, "ood_test", "ood_val"))
