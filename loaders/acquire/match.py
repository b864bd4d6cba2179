"""Rows as a manifest lists them against rows as a source gives them: which are absent, which changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData
from ...core.listings.plural import counted
from ...splits.catalogue import manifests

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class RowDifference:
    """Where each listed row stands in the source (`places`, shape (rows,)); which are `absent`, which `changed`."""

    ids: NDArray[np.uint64]
    places: NDArray[np.int64]
    absent: NDArray[np.bool_]
    changed: NDArray[np.bool_]

    @property
    def differ(self) -> bool:
        return bool(self.absent.any() or self.changed.any())

    def __str__(self) -> str:
        first = ", ".join(f"{value:016x}" for value in self.ids[self.absent | self.changed][:3])
        absent = counted(int(self.absent.sum()), "row is", "rows are")
        return f"{absent} not in the source and {self.changed.sum()} changed (first: {first})"


def compare_rows(listed: pa.Table, rows: pa.Table) -> RowDifference:
    """`listed` and `rows` have `row_id` and `check`; `rows` in ascending row id."""
    known, wanted = rows["row_id"].to_numpy(), listed["row_id"].to_numpy()
    places: NDArray[np.int64] = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
    if not len(known):
        return RowDifference(wanted, places, np.ones(len(wanted), bool), np.zeros(len(wanted), bool))
    absent = known[places] != wanted
    changed = ~absent & (rows["check"].to_numpy()[places] != listed["check"].to_numpy())
    return RowDifference(wanted, places, absent, changed)


def changed_since(source: str, digest: str, rows: pa.Table) -> str:
    """What is known of the difference between a source as it was pinned (by `digest`) and the rows that it gives now,
    from the manifests that list its rows; empty where none does."""
    for manifest in manifests():
        pin = manifest.definition.source
        if manifest.definition.ships_rows and (pin.name, pin.digest) == (source, digest):
            try:
                found = compare_rows(manifest.shipped(), rows)
            except BadData:
                continue
            if found.differ:
                return f"of the {len(found.ids):,} rows that {manifest.full_name} lists, {found}"
    return ""
