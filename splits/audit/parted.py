"""The rows of a split as the audit sees them: the source's fields, and each row's part, group, severity and label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ..assignment import PARTS
from ..manifest import SplitDefinition
from ..schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

Mask = NDArray[np.bool_]

RANDOM = "random_split"
"""The name of the reference pair: a random split of the pooled train and ood_test rows into the same sizes."""


@dataclass(frozen=True)
class PartedRows:
    """`table` has the source's fields, `row_id`, and the rule's output as `its group`, `its severity` and `its label`;
    `masks` has a boolean mask of the table's rows for each part that has rows, in the usual order."""

    definition: SplitDefinition
    schema: Schema
    table: pa.Table
    masks: dict[str, Mask]

    @property
    def names(self) -> list[str]:
        return list(self.masks)

    @property
    def evaluated(self) -> list[str]:
        """The parts that are compared with training: all others, or none without training rows."""
        return [name for name in self.names if name != "train"] if "train" in self.names else []

    @property
    def shifted(self) -> bool:
        """Whether there is a shift to measure: rows in train and in ood_test."""
        return {"train", "ood_test"} <= self.masks.keys()

    @property
    def row_ids(self) -> NDArray[np.uint64]:
        return np.asarray(self.table["row_id"].to_numpy(), np.uint64)

    def pairs(self) -> dict[str, tuple[Mask, Mask]]:
        """The pairs of masks to compare, by name: each part with training, and a random split."""
        pairs = {name: (self.masks["train"], self.masks[name]) for name in self.evaluated}
        if self.shifted:
            pairs[RANDOM] = self._random()
        return pairs

    def _random(self) -> tuple[Mask, Mask]:
        test = self.masks["ood_test"]
        pooled = np.flatnonzero(self.masks["train"] | test)
        drawn = pooled[draw_permutation("audit/random split", self.row_ids[pooled])]
        count = int(test.sum())
        masks = np.zeros((2, len(test)), bool)
        masks[0, drawn[count:]], masks[1, drawn[:count]] = True, True
        return masks[0], masks[1]

    def total_variations(self, codes: NDArray[np.int64]) -> dict[str, float]:
        """Return for each pair the total variation distance (half the L1 distance, 0 to 1) of a categorical variable,
        given as a code for each row."""
        variations = {}
        for name, masks in self.pairs().items():
            left, right = (np.bincount(codes[mask], minlength=int(codes.max()) + 1) / mask.sum() for mask in masks)
            variations[name] = round(float(np.abs(left - right).sum() / 2), 4)
        return variations

    def thinned(self, limit: int) -> PartedRows:
        """Return the split with at most `limit` rows of each part, drawn by row id; itself if no part has more."""
        if all(mask.sum() <= limit for mask in self.masks.values()):
            return self
        places = np.sort(np.concatenate([self.sample(name, limit) for name in self.names]))
        return replace(
            self, table=self.table.take(places), masks={name: mask[places] for name, mask in self.masks.items()}
        )

    def sample(self, part: str, limit: int) -> NDArray[np.int64]:
        """Return the positions of at most `limit` rows of a part, drawn by row id, ascending."""
        places = np.flatnonzero(self.masks[part])
        if len(places) <= limit:
            return places
        return np.sort(places[draw_permutation("audit/sample", self.row_ids[places])[:limit]])


def join_parts(definition: SplitDefinition, source: pa.Table, assigned: pa.Table, schema: Schema) -> PartedRows:
    """Join a manifest's rows with their source's fields."""
    import pyarrow.compute as pc

    places = np.searchsorted(source["row_id"].to_numpy(), assigned["row_id"].to_numpy())
    # A split of all rows is as large as its source, which may exceed memory: map it, do not copy it.
    table = source if len(places) == source.num_rows else source.take(places)
    for name in ("group", "severity", "label"):
        if name in assigned.column_names:
            table = table.append_column(f"its {name}", assigned[name])
    masks = {part: pc.equal(assigned["part"], part).to_numpy() for part in PARTS}
    return PartedRows(definition, schema, table, {part: mask for part, mask in masks.items() if mask.any()})


def encode_values(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[object]]:
    """Encode a column of scalars as codes 0, 1, 2 .., shape (rows,); return the codes and the sorted values."""
    import pyarrow.compute as pc

    dictionary = column.combine_chunks().dictionary_encode()
    order = pc.sort_indices(dictionary.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[dictionary.indices.to_numpy()], dictionary.dictionary.take(order).to_pylist()
