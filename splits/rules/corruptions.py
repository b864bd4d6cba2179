"""Corruptions: train on clean images, test on corrupted ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import read_names, read_numeric_column, read_text_column

if TYPE_CHECKING:
    import pyarrow as pa

_CLEAN = "none"
_PARTS = {
    ("train", False): "train",
    ("validation", False): "id_val",
    ("validation", True): "ood_val",
    ("test", False): "id_test",
    ("test", True): "ood_test",
}


def corrupted(
    table: pa.Table, *, published: str = "published", corruption: str = "corruption", level: str = "level"
) -> Assignment:
    """Train on clean rows, test on corrupted ones. Rows are train, validation or test (`published`), and clean or
    corrupted (`corruption` is none, or a name): clean rows are `train`, `id_val` and `id_test`, corrupted rows
    `ood_val` and `ood_test`. The corruption is the group, its level (0 for clean rows) the severity.

    Parameters:
        published: the field with the values train, validation or test.
        corruption: the field with the name of a row's corruption, or none.
        level: the integer field with the corruption's level.
    """
    group = read_names(table, corruption)
    origin = read_text_column(table, published).to_pylist()
    touched = (group != _CLEAN).tolist()
    if stray := sorted({pair for pair in zip(origin, touched, strict=True) if pair not in _PARTS}):
        what = ", ".join(f"{'corrupted' if changed else 'clean'} {part!r}" for part, changed in stray)
        raise BadDefinition(f"rows are {what}: a row is train (clean only), validation or test")
    part = np.array([_PARTS[pair] for pair in zip(origin, touched, strict=True)])
    return Assignment(part=part, group=group, severity=read_numeric_column(table, level))
