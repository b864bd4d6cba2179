"""Augmentations: one file each, its name the setting `augment`; several are joined by `+` and applied in that order.

A file holds `SETTINGS` (defaults, a literal), its citation, and one of

    more(task, rows, settings)       training rows to add, made once before training, and for each the place of the row
                                     that it was made from; an added row has the weight and the group of that row
    changed(x, draws)                augmented rows of a step, on the device: images (B, channels, height, width) from
                                     0 to 1, or another input that it reads; random values are drawn from `draws`
    mixed(x, draws)                  rows (K, n, ..) mixed with partners of the same batch: the mixed rows, the partner
                                     of each, and the share of its own label that it retains, (K, n) each

The last two also state their inputs, `READS`: `colours` (images of one channel or three), `images`,
`spectrograms` (rows of two axes, time and frequency) or `numbers` (anything that is no category). Draws of a step's
rows: `_draws.py`.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.model import Columns, Task
from ...core.errors import ModelError
from ...core.plugins import load_module

More = tuple[dict[str, list[Any]], list[int]]
"""Added rows as columns, and the place of the row that each was made from."""


def parse_augmentation_names(augment: str) -> list[str]:
    """The augmentations that the setting names, in order."""
    return augment.split("+")


def load_augmentations(augment: str) -> list[ModuleType]:
    """The modules of the augmentations that the setting names, in order."""
    return [load_module("baselines/augmentations", name, "augmentation") for name in parse_augmentation_names(augment)]


def augment_rows(
    task: Task,
    rows: Columns,
    weight: NDArray[np.float64],
    group: NDArray[Any] | None,
    settings: Mapping[str, Any],
) -> tuple[Columns, NDArray[np.float64], NDArray[Any] | None]:
    """Training rows, followed by those that the setting `augment` adds, with their weights and groups."""
    for augmentation in load_augmentations(settings["augment"]):
        if not hasattr(augmentation, "more"):
            continue
        columns, parents = augmentation.more(task, rows, settings)
        if parents:
            every = np.concatenate([np.arange(len(weight)), np.asarray(parents, np.int64)])
            joined = {
                name: np.array([*column, *columns[name]], object) for name, column in rows.items() if name in columns
            }
            rows, weight, group = rows | joined, weight[every], None if group is None else group[every]  # type: ignore[operator]
    return rows, weight, group


def find_text_field(task: Task, what: str) -> str:
    """The one text column that a sequence task reads; `ModelError` for other tasks."""
    if task.type != "sequence" or len(task.inputs) != 1:
        raise ModelError(f"augmentation {what}: it needs a sequence task with one text (this is a {task.type} task)")
    return task.inputs[0]
