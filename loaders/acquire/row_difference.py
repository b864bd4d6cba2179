"""Compare the rows that a manifest lists with those of a source: which are absent, which changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.text import format_count

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class RowDifference:
    """The position of each listed row in the source (`places`, shape (rows,)), and which rows are `absent` or
    `changed`."""

    ids: NDArray[np.uint64]
    source_indices: NDArray[np.int64]
    absent: NDArray[np.bool_]
    changed: NDArray[np.bool_]

    @property
    def differ(self) -> bool:
        return bool(self.absent.any() or self.changed.any())

    def __str__(self) -> str:
        first = ", ".join(f"{value:016x}" for value in self.ids[self.absent | self.changed][:3])
        absent = format_count(int(self.absent.sum()), "row is", "rows are")
        return f"{absent} not in the source and {self.changed.sum()} changed (first: {first})"


def compare_rows(listed: pa.Table, rows: pa.Table) -> RowDifference:
    """Compare two tables that have `row_id` and `check`; `rows` in ascending row id."""
    known, listed_ids = rows["row_id"].to_numpy(), listed["row_id"].to_numpy()
    source_indices: NDArray[np.int64] = np.minimum(np.searchsorted(known, listed_ids), max(len(known) - 1, 0))
    if not len(known):
        return RowDifference(
            listed_ids, source_indices, np.ones(len(listed_ids), bool), np.zeros(len(listed_ids), bool)
        )
    absent = known[source_indices] != listed_ids
    changed = ~absent & (rows["check"].to_numpy()[source_indices] != listed["check"].to_numpy())
    return RowDifference(listed_ids, source_indices, absent, changed)
