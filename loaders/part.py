"""A part of a split: verified rows, memory-mapped, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..splits.errors import FarshiftError, UnknownName
from ..splits.schema import Schema
from .order import epoch_order

if TYPE_CHECKING:
    import pyarrow as pa

_ADDED = ("row_id", "weight", "group", "severity", "corrupted")


@dataclass(frozen=True)
class Part:
    """Rows of one part of a split, in stored order (ascending row id; an order that tells nothing of the rows).

    Columns: the source's fields (the label as given: where a split corrupts labels, the corrupted one), `row_id`,
    and where the split has them `weight`, `group`, `severity`, `corrupted`. A row of weight 3 stands for three
    published copies and is one row here.
    """

    split: str
    identity: str
    name: str
    schema: Schema
    label: str
    source: pa.Table
    places: NDArray[np.int64]
    carried: dict[str, NDArray[Any]]
    override: np.ma.MaskedArray[Any, Any] | None = None

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        return f"Part({self.split}, {self.name}: {len(self):,} rows; {', '.join(self.columns)})"

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(field.name for field in self.schema.fields), *(name for name in _ADDED if self._has(name)))

    def _has(self, name: str) -> bool:
        return name == "row_id" or name in self.carried or (name == "corrupted" and self.override is not None)

    @property
    def row_ids(self) -> NDArray[np.uint64]:
        """The rows' ids, ascending, shape (rows,)."""
        ids: NDArray[np.uint64] = self.source["row_id"].to_numpy()[self.places]
        return ids

    @property
    def weighted_rows(self) -> int:
        """The number of rows with published copies counted."""
        return int(self.carried["weight"].sum()) if "weight" in self.carried else len(self)

    def select(self, positions: NDArray[Any]) -> Part:
        """The part's rows at `positions` (indices or a boolean mask), in the order given."""
        return replace(
            self,
            places=self.places[positions],
            carried={name: values[positions] for name, values in self.carried.items()},
            override=None if self.override is None else self.override[positions],
        )

    def __getitem__(self, position: int) -> dict[str, Any]:
        """One row as Python values; negative positions count from the end."""
        if not -len(self) <= position < len(self):
            raise IndexError(f"row {position} of a part of {len(self)} rows")
        row: dict[str, Any] = self.select(np.array([position % len(self)])).arrow().to_pylist()[0]
        return row

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows as a pyarrow Table; tensors are fixed-size lists in C order."""
        import pyarrow as pa

        return pa.table({name: self._column(name, None) for name in self._chosen(columns)})

    def numpy(self, columns: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
        """The rows as arrays, first axis the row; text is an object array of `str`, tensors have their shape."""
        return {name: self._array(name, None) for name in self._chosen(columns)}

    def batches(
        self,
        batch_size: int,
        seed: int | None = None,
        epoch: int = 0,
        drop_last: bool = False,
        columns: Sequence[str] | None = None,
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """Dictionaries of arrays of `batch_size` rows (the last one may be shorter), each row once.

        Without a seed, in stored order; with one, in an order that is a pure function of (manifest identity, part,
        seed, epoch).
        """
        if batch_size < 1:
            raise FarshiftError(f"batch_size must be at least 1, not {batch_size}")
        chosen = self._chosen(columns)
        order = (
            np.arange(len(self)) if seed is None else epoch_order(self.identity, self.name, seed, epoch, self.row_ids)
        )
        stop = len(self) - len(self) % batch_size if drop_last else len(self)
        for start in range(0, stop, batch_size):
            here = order[start : start + batch_size]
            yield {name: self._array(name, here) for name in chosen}

    def truth(self) -> NDArray[Any]:
        """The true labels, whatever a split made of them; for scorers. Shape (rows,)."""
        return self._to_array(self.label, self._stored(self.label, self.places))

    def given(self) -> NDArray[Any]:
        """The labels as training sees them. Shape (rows,)."""
        return self._array(self.label, None)

    @property
    def corrupted(self) -> NDArray[np.bool_]:
        """Which rows' label was replaced, shape (rows,)."""
        return np.zeros(len(self), bool) if self.override is None else ~np.ma.getmaskarray(self.override)

    def _chosen(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        if columns is None:
            return self.columns
        for name in columns:
            if name not in self.columns:
                raise UnknownName("column", name, self.columns)
        return tuple(columns)

    def _stored(self, name: str, places: NDArray[Any]) -> pa.Array:
        column = self.source[name]
        return column.chunk(0).take(places) if column.num_chunks == 1 else column.take(places).combine_chunks()

    def _column(self, name: str, here: NDArray[Any] | None) -> Any:
        """A column as Arrow data, or NumPy data that needs no conversion."""
        import pyarrow as pa

        places = self.places if here is None else self.places[here]
        if name in self.carried:
            return self.carried[name] if here is None else self.carried[name][here]
        if name == "corrupted":
            return self.corrupted if here is None else self.corrupted[here]
        stored = self._stored(name, places)
        if name != self.label or self.override is None:
            return stored
        override = self.override if here is None else self.override[here]
        values = np.where(np.ma.getmaskarray(override), self._to_array(name, stored), override.data)
        return pa.array(values, stored.type)

    def _array(self, name: str, here: NDArray[Any] | None) -> NDArray[Any]:
        column = self._column(name, here)
        return column if isinstance(column, np.ndarray) else self._to_array(name, column)

    def _to_array(self, name: str, column: pa.Array) -> NDArray[Any]:
        if name == "row_id":
            ids: NDArray[Any] = column.to_numpy()
            return ids
        field = self.schema[name]
        if field.shape:
            return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, *field.shape)  # type: ignore[no-any-return]
        return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
