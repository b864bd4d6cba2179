"""Augmentations: families of label-preserving transformations of the inputs; one file each.

A module has `augment(values, stream, row_ids) -> values`: the rows' values of one input, shape (n, height, width[,
channels]), changed, with the same shape and type. Random draws are pure functions of `stream` and the row ids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition
from ...core.plugins import load_module
from ..model import Columns, Task


def augment_inputs(family: str, columns: Columns, task: Task, row_ids: NDArray[np.uint64]) -> dict[str, NDArray[Any]]:
    """Return the task's inputs under one family of augmentations."""
    augmentation = load_module("benchmarks/augmentations", family, "augmentation")
    augmented_columns = {}
    for name in task.inputs:
        values = np.asarray(columns[name])
        if values.dtype == object or values.ndim < 3:
            raise BadDefinition(f"the augmentation {family} is for images, and the input {name!r} is not an image")
        augmented_columns[name] = augmentation.augment(values, f"augmentation/{family}/{name}", row_ids)
    return augmented_columns
