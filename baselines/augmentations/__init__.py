"""Augmentations: more training rows made from those there are; one file each, its name the setting `augment`.

A file holds `more(task, rows, settings)` and its citation: the rows that it adds, and of each the place of the row that
it was made from. They are made from training rows alone, before anything else is learned from them. An added row has
the weight and the group of the row that it was made from.

Settings that an augmentation may read: `copies` (added rows for each) and `hint_task`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.model import Columns, Task
from ...core.errors import ModelError
from ...core.plugins import module

More = tuple[dict[str, list[Any]], list[int]]
"""Added rows as columns, and the place of the row that each was made from."""


def augmented(
    task: Task,
    rows: Columns,
    weight: NDArray[np.float64],
    group: NDArray[Any] | None,
    settings: Mapping[str, Any],
) -> tuple[Columns, NDArray[np.float64], NDArray[Any] | None]:
    """Training rows with those that the setting `augment` adds after them; their weights and groups follow."""
    columns, parents = module("baselines/augmentations", settings["augment"], "augmentation").more(task, rows, settings)
    if not parents:
        return rows, weight, group
    every = np.concatenate([np.arange(len(weight)), np.asarray(parents, np.int64)])
    joined = {name: np.array([*column, *columns[name]], object) for name, column in rows.items() if name in columns}
    return rows | joined, weight[every], None if group is None else group[every]  # type: ignore[operator]


def text_field(task: Task, what: str) -> str:
    """The one text column that a sequence task reads; `ModelError` for other tasks."""
    if task.type != "sequence" or len(task.inputs) != 1:
        raise ModelError(f"augmentation {what}: it makes rows of one text column, and this is a {task.type} task")
    return task.inputs[0]
