"""The rows of a part: memory-mapped columns, in stored order or in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from ...core.errors import UnknownName
from ...core.label_access import refuse_labels
from ...splits.schema import Schema
from .columns import Column, FixedColumn, TextColumn, cut_batches, join_chunks, to_microseconds, to_object_array
from .order import AsStored, GlobalBatches, Order, make_order

if TYPE_CHECKING:
    import pyarrow as pa

_ADDED = ("row_id", "weight", "group", "severity", "corrupted")


@dataclass(frozen=True)
class BatchedPart:
    """The rows of a part, in stored order (ascending row id); see `Part`, which adds tensors, tokens and exports."""

    split: str
    identity: str
    name: str
    schema: Schema
    label: str
    source: pa.Table
    source_indices: NDArray[np.int64]
    row_metadata: dict[str, NDArray[Any]]
    override: np.ma.MaskedArray[Any, Any] | None = None
    label_names: tuple[str, ...] = ()
    held_out_as: str = ""
    """The part for which a benchmark holds these rows out of the part `name`."""

    def __len__(self) -> int:
        return len(self.source_indices)

    def __repr__(self) -> str:
        name = f"{self.held_out_as}, held out of {self.name}" if self.held_out_as else self.name
        return f"{type(self).__name__}({self.split}, {name}: {len(self):,} rows; {', '.join(self.columns)})"

    @property
    def exported_name(self) -> str:
        """The name of these rows in an export: that of the part for which a benchmark holds them out, if it does."""
        return self.held_out_as or self.name

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return (*(field.name for field in self.schema.fields), *(name for name in _ADDED if self._has(name)))

    def _has(self, name: str) -> bool:
        return name == "row_id" or name in self.row_metadata or (name == "corrupted" and self.override is not None)

    @property
    def row_ids(self) -> NDArray[np.uint64]:
        """The rows' ids, ascending, shape (rows,)."""
        ids: NDArray[np.uint64] = self.source["row_id"].to_numpy()[self.source_indices]
        return ids

    @property
    def weighted_rows(self) -> int:
        """The number of rows, counting published copies."""
        return int(self.row_metadata["weight"].sum()) if "weight" in self.row_metadata else len(self)

    def select(self, positions: NDArray[Any]) -> Self:
        """Select the rows at `positions` (indices or a boolean mask), in the given order.

        >>> import farshift as fs
        >>> part = fs.load("modadd97/xi35")
        >>> part.select(part.numpy(["a"])["a"] < 10)
        Part(modadd97/xi35@1, train: 500 rows; a, b, sum, row_id, corrupted)
        """
        return replace(
            self,
            source_indices=self.source_indices[positions],
            row_metadata={name: values[positions] for name, values in self.row_metadata.items()},
            override=None if self.override is None else self.override[positions],
        )

    def without_labels(self) -> Self:
        """Return the same rows with their inputs and ids only: no label, and no metadata (groups, severities)."""
        fields = tuple(field for field in self.schema.of_role("input") if field.name in self.source.column_names)
        source = self.source.select(["row_id", *(field.name for field in fields)])
        schema = Schema(fields) if fields else self.schema
        return replace(self, schema=schema, label="", source=source, row_metadata={}, override=None, label_names=())

    @overload
    def __getitem__(self, position: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, position: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, position: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        """Return one row as Python values, or the rows of a slice. Negative positions count from the end."""
        if isinstance(position, slice):
            rows: list[dict[str, Any]] = self.select(np.arange(len(self))[position]).arrow().to_pylist()
            return rows
        if not isinstance(position, SupportsIndex):
            what = f"a part is indexed by a row number or a slice, not {position!r}"
            raise TypeError(f"{what}: select() takes a list of rows, and numpy() or arrow() gives columns")
        if not -len(self) <= position < len(self):
            raise IndexError(f"row {position} is out of range for a part of {len(self)} rows")
        row: dict[str, Any] = self.select(np.array([position % len(self)])).arrow().to_pylist()[0]
        return row

    def __getitems__(self, positions: Sequence[int]) -> list[dict[str, Any]]:
        """Return the rows at these positions with NumPy values (numbers as 0-d arrays), for torch's `DataLoader`, so
        that it makes tensors of all of them, including row ids and times (microseconds since 1970)."""
        columns = self.select(np.asarray(positions, np.int64) % len(self)).numpy()
        return [
            {
                name: column[row] if column.dtype == object else to_microseconds(column)[row, ...]
                for name, column in columns.items()
            }
            for row in range(len(positions))
        ]

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows as a pyarrow Table; tensors are fixed-size lists in C order.

        >>> import farshift as fs
        >>> fs.load("modadd97/xi35").arrow(["a", "b"]).slice(0, 2).to_pylist()
        [{'a': 47, 'b': 24}, {'a': 36, 'b': 26}]
        """
        import pyarrow as pa

        return pa.table({name: self._arrow(name) for name in self.resolve_columns(columns)})

    def numpy(self, columns: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
        """Return the rows as arrays whose first axis is the row; text is an object array of `str`, tensors have their
        shape.

        >>> import farshift as fs
        >>> fs.load("modadd97/xi35").numpy(["a"])["a"][:5].tolist()
        [47, 36, 80, 14, 38]
        """
        return {name: _read_all(self.column(name), len(self)) for name in self.resolve_columns(columns)}

    def batches(
        self,
        batch_size: int,
        seed: int | None = None,
        epoch: int = 0,
        drop_last: bool = False,
        columns: Sequence[str] | None = None,
        *,
        rank: int = 0,
        world: int = 1,
        worker: int = 0,
        workers: int = 1,
        start: int = 0,
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """Iterate over one epoch in dictionaries of arrays: each row once, over all ranks and workers.

        Without a seed the order is the stored one; with a seed it is a pure function of (manifest identity, part, seed,
        epoch). The order is divided into global batches of `batch_size` rows, the same for every `world` that divides
        `batch_size`: `rank` gets a contiguous share of each (an even share of a shorter last batch, which `drop_last`
        omits). `workers` read the global batches in turn. `start` is the first global batch to yield: an epoch that was
        interrupted before batch t resumes with start=t, with any `world` and `workers`.

        Texts are objects of `str`. The caller owns every array.

        Raises `FarshiftError` if these numbers are inconsistent, `UnknownName` for an unknown column.

        >>> import farshift as fs
        >>> part = fs.load("modadd97/xi35")
        >>> first = next(part.batches(4, seed=0, columns=["a", "b"]))
        >>> first["a"].tolist(), first["b"].tolist()
        ([49, 91, 57, 77], [56, 50, 31, 94])
        """
        cut = GlobalBatches(len(self), batch_size, rank, world, drop_last)
        steps = cut.steps(start, worker, workers)
        return self._read_batches(self.resolve_columns(columns), self.order(seed, epoch), cut, steps)

    def _read_batches(
        self, names: Sequence[str], order: Order, cut: GlobalBatches, steps: range
    ) -> Iterator[dict[str, NDArray[Any]]]:
        columns = {name: self.column(name) for name in names}
        for positions, bounds in cut.positions(order, steps):
            yield from cut_batches(columns, positions, bounds, in_order=isinstance(order, AsStored))

    def order(self, seed: int | None, epoch: int) -> Order:
        """Return the order of an epoch; the stored order without a seed.

        >>> import farshift as fs
        >>> fs.load("modadd97/xi35").order(seed=0, epoch=0).sequence[:3].tolist()
        [479, 1382, 3660]
        """
        # Row ids are gathered only if they are needed: it takes as long as a small batch.
        return AsStored() if seed is None else make_order(self.identity, self.name, seed, epoch, self.row_ids)

    def true_labels(self) -> NDArray[Any]:
        """Return the true labels, before any corruption by the split; for scoring. Booleans are the classes 0 and 1.
        Shape (rows,).

        >>> import farshift as fs
        >>> part = fs.load("modadd97/xi35")
        >>> part.true_labels()[:4].tolist(), part.observed_labels()[:4].tolist(), part.corrupted[:4].tolist()
        ([71, 62, 57, 54], [71, 62, 19, 54], [False, False, True, False])
        """
        refuse_labels(f"{self.split}, {self.name}")
        return _to_classes(_read_all(self._source_column(self.label), len(self)))

    def observed_labels(self) -> NDArray[Any]:
        """Return the labels that training sees; booleans are the classes 0 and 1. Shape (rows,)."""
        return _to_classes(_read_all(self.column(self.label), len(self)))

    @property
    def corrupted(self) -> NDArray[np.bool_]:
        """The rows whose label was replaced, shape (rows,)."""
        return np.zeros(len(self), bool) if self.override is None else ~np.ma.getmaskarray(self.override)

    def resolve_columns(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """Return the named columns, one by its name alone, or all. Raises `UnknownName` for an unknown one."""
        columns = (columns,) if isinstance(columns, str) else columns
        if columns is None or self.label in columns:
            refuse_labels(f"{self.split}, {self.name}")
        if columns is None:
            return self.columns
        for name in columns:
            if name not in self.columns:
                raise UnknownName("column", name, self.columns)
        return tuple(columns)

    def column(self, name: str) -> Column:
        """Return a reader of a column by position."""
        if name == self.label:
            refuse_labels(f"{self.split}, {self.name}")
        if name in self.row_metadata or name == "corrupted":
            return FixedColumn(self.corrupted if name == "corrupted" else self.row_metadata[name])
        column = self._source_column(name)
        if name != self.label or self.override is None:
            return column
        if isinstance(column, FixedColumn):
            return replace(column, override=self.override)
        return TextColumn(self._arrow(name))

    def _source_column(self, name: str) -> Column:
        stored = join_chunks(self.source[name])
        source_indices = self.source_indices if self._first_place is None else None
        if self._first_place is not None:
            stored = stored.slice(self._first_place, len(self))
        kind = "uint64" if name == "row_id" else self.schema[name].item
        if kind in ("string", "bytes"):
            return TextColumn(stored, source_indices)
        shape = () if name == "row_id" else self.schema[name].shape
        flat = (stored.flatten() if shape else stored).to_numpy(zero_copy_only=False)
        return FixedColumn(flat.reshape(-1, *shape), source_indices)

    @cached_property
    def _first_place(self) -> int | None:
        """The position of the part's first row in its source, if its rows are adjacent there."""
        return int(self.source_indices[0]) if len(self) and bool((np.diff(self.source_indices) == 1).all()) else None

    def _arrow(self, name: str) -> Any:
        """A column as Arrow data, or as NumPy data that needs no conversion."""
        import pyarrow as pa

        if name in self.row_metadata:
            return self.row_metadata[name]
        if name == "corrupted":
            return self.corrupted
        column = self.source[name]
        stored = (
            column.chunk(0).take(self.source_indices) if column.num_chunks == 1 else column.take(self.source_indices)
        )
        if name != self.label or self.override is None:
            return stored
        values = np.where(np.ma.getmaskarray(self.override), self.true_labels(), self.override.data)
        values = values.astype(bool) if self.schema[name].type == "bool" else values
        return pa.array(values, stored.type)


def _to_classes(labels: NDArray[Any]) -> NDArray[Any]:
    """Convert boolean labels to int64 classes; return others unchanged."""
    return labels.astype(np.int64) if labels.dtype == bool else labels


def _read_all(column: Column, rows: int) -> NDArray[Any]:
    every = np.arange(rows)
    return column.take(every) if isinstance(column, FixedColumn) else to_object_array(column.take(every))
