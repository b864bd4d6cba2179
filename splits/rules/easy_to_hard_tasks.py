"""Easy-to-hard over tasks: rows of one task share its examples, so no task is in both training and test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.draws import derive_key, draw_permutation
from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import read_names, read_numeric_column

if TYPE_CHECKING:
    import pyarrow as pa


def levels(
    table: pa.Table,
    *,
    field: str,
    easy: list[int],
    hard: list[int],
    task: str,
    id_test: int,
    seed: str,
    without: list[str] | None = None,
) -> Assignment:
    """Rows at an `easy` level (`field`) train, except those of `id_test` tasks, drawn by `seed`; rows at a `hard` level
    are `ood_test`; other rows are dropped, as are those of the tasks `without`. Severity is the level, and each task is
    a group.

    Parameters:
        field: the integer field with the level.
        easy: the levels that train.
        hard: the levels in `ood_test`.
        task: the field with a row's task.
        id_test: the number of tasks in `id_test`, at the easy levels.
        without: tasks that are dropped.
    """
    level = read_numeric_column(table, field)
    names = read_names(table, task)
    if absent := sorted(set(without or []) - set(names.tolist())):
        raise BadDefinition(f"without: no row has {task} = {', '.join(absent)}")
    tasks = np.unique(names[np.isin(level, easy)])
    if not 0 <= id_test < len(tasks):
        raise BadDefinition(f"id_test = {id_test}, but only {len(tasks)} tasks have a {field} in {easy}")
    keys = np.array([derive_key(name) for name in tasks.tolist()], np.uint64)
    withheld = tasks[draw_permutation(f"{seed}/id_test", keys)[:id_test]]
    part = np.where(np.isin(level, easy), "train", np.where(np.isin(level, hard), "ood_test", ""))
    part[np.isin(level, easy) & np.isin(names, withheld)] = "id_test"
    part[np.isin(names, without or [])] = ""
    return Assignment(part=part, severity=level, group=names)
