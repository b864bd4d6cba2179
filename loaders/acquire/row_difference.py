"""Rows as a manifest lists them against rows as a source gives them: which are absent, which changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData
from ...core.listings.plural import format_count
from ...splits.catalogue import list_manifests

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class RowDifference:
    """Where each listed row stands in the source (`places`, shape (rows,)); which are `absent`, which `changed`."""

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
    """`listed` and `rows` have `row_id` and `check`; `rows` in ascending row id."""
    known, listed_ids = rows["row_id"].to_numpy(), listed["row_id"].to_numpy()
    source_indices: NDArray[np.int64] = np.minimum(np.searchsorted(known, listed_ids), max(len(known) - 1, 0))
    if not len(known):
        return RowDifference(
            listed_ids, source_indices, np.ones(len(listed_ids), bool), np.zeros(len(listed_ids), bool)
        )
    absent = known[source_indices] != listed_ids
    changed = ~absent & (rows["check"].to_numpy()[source_indices] != listed["check"].to_numpy())
    return RowDifference(listed_ids, source_indices, absent, changed)


def describe_changes(source: str, digest: str, rows: pa.Table) -> str:
    """What is known of the difference between a source as it was pinned (by `digest`) and the rows that it gives now,
    from the manifests that list its rows; empty where none does."""
    for manifest in list_manifests():
        pin = manifest.definition.source
        if manifest.definition.ships_rows and (pin.name, pin.digest) == (source, digest):
            try:
                difference = compare_rows(manifest.shipped(), rows)
            except BadData:
                continue
            if difference.differ:
                return f"of the {len(difference.ids):,} rows that {manifest.full_name} lists, {difference}"
    return ""
