"""Label noise that was published beside the true labels: distant supervision, annotators, a first version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadDefinition
from ..assignment import Assignment
from ._where import where

if TYPE_CHECKING:
    import pyarrow as pa


def relabelled(table: pa.Table, *, label: str, given: str, field: str, parts: dict[str, str]) -> Assignment:
    """Rows go to the part that `parts` names for their published one (`field`); those of others are dropped.
    Training rows have the label of the field `given` where that is another than the true one; validation and test rows
    keep the true labels. Labels may be numbers or texts, such as the tags of a sentence."""
    part = np.full(table.num_rows, "", dtype="U8")
    for origin, name in parts.items():
        part[where(table, {field: [origin]})] = name
    absent = [name for name in (label, given) if name not in table.column_names]
    if absent:
        raise BadDefinition(f"no field {absent[0]!r}")
    if table[label].type != table[given].type:
        raise BadDefinition(f"{label!r} is {table[label].type}, and {given!r} is {table[given].type}")
    true, told = (np.array(table[name].to_pylist()) for name in (label, given))
    wrong = (part == "train") & (true != told)
    return Assignment(part=part, label=np.ma.MaskedArray(told, mask=~wrong))
