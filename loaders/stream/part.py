"""A part that is read without a local copy: the same batches in the same order, with every row verified.

An epoch is read in blocks of batches, which are prefetched, verified, and yielded batch by batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import accumulate, pairwise
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData
from ...core.progress import report_progress
from ...splits.rows import compute_numbered_ids, compute_row_digests, get_digest_prefixes
from ..batching.columns import Column, cut_batches
from ..batching.order import AsStored, GlobalBatches, Order
from ..part import Part
from .files import File, forget_files

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

Batch = dict[str, NDArray[Any]]

Positions = NDArray[np.int64]

THREADS = 4
"""The number of threads on which an iterator reads."""

_BLOCKS = 4
"""The number of blocks into which an iterator's memory is divided: one is yielded while others are read."""

_ROWS = 256
"""Rows of which a block read in stored order has a multiple."""

_AT_ONCE = 1 << 20
"""The bytes of rows hashed at once: their canonical form takes about ten times as much memory."""


def prefetch_tasks(tasks: Iterator[tuple[int, Callable[[Event], T]]], max_bytes: int) -> Generator[T, None, None]:
    """Yield the results of tasks, each a size in bytes and a function that stops once its event is set, in order, while
    the next ones run. Results that are prefetched or were yielded last have at most `max_bytes` bytes in total, or are
    a single larger one. Threads end when the iterator is exhausted, closed or garbage collected."""
    cancel, running, used_bytes = Event(), deque[tuple[int, Future[T]]](), 0
    pool = ThreadPoolExecutor(THREADS, "farshift-stream")
    try:
        task = next(tasks, None)
        while task is not None or running:
            while task is not None and len(running) < THREADS and (not running or used_bytes + task[0] <= max_bytes):
                running.append((task[0], pool.submit(task[1], cancel)))
                used_bytes += task[0]
                task = next(tasks, None)
            size, future = running.popleft()
            yield future.result()
            del future  # do not keep a reference to the result
            used_bytes -= size
    finally:
        cancel.set()
        pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Store(ABC):
    """Rows of a source in `files`, numbered from 0 in the store's order.

    sizes: the approximate memory in bytes for reading each row; occurrences: its index among the source's rows with
    equal inputs, from 0; both of shape (rows,). least_block: the minimum efficient size of a read, in bytes.
    """

    files: tuple[File, ...]
    sizes: NDArray[np.int64]
    occurrences: NDArray[np.int64]

    least_block: ClassVar[int]

    @abstractmethod
    def describe_location(self, row: int) -> str:
        """Return a row's location for messages: the file, and the offset or row in it."""

    @abstractmethod
    def read(self, rows: Positions, cancel: Event) -> pa.Table:
        """Read all fields of rows, in the given order and with the fields' types; the label is the source's own."""


@dataclass(frozen=True, kw_only=True, repr=False)
class StreamedPart(Part):
    """A part whose rows are read from `store` whenever they are needed: its source has only `row_id` and `check`.
    Batches, order, columns and states are those of the local `Part`.

    rows: the position of each row in the store. memory: the maximum bytes of rows of an iterator.
    """

    store: Store
    rows: Positions
    memory: int

    @classmethod
    def of(cls, known: Part, store: Store, rows: Positions, memory: int) -> StreamedPart:
        """Stream a part of which row ids and checks are known."""
        own = {field.name: getattr(known, field.name) for field in fields(Part)}
        return cls(**own, store=store, rows=rows, memory=memory)

    def select(self, positions: NDArray[Any]) -> Self:
        """Select the rows at `positions` (indices or a boolean mask), in the given order."""
        return replace(super().select(positions), rows=self.rows[positions])

    def load(self, columns: Sequence[str], report: bool = False) -> Part:
        """Read the rows into memory: their ids, and the named columns of the source. report: also report progress."""
        import pyarrow as pa

        names = [name for name in columns if name in {field.name for field in self.schema.fields}]
        types: dict[str, Any] = {"row_id": pa.uint64(), **{name: self.schema[name].arrow() for name in names}}
        pieces, done = [pa.schema(types).empty_table()], 0
        cut = GlobalBatches(len(self), max(1, min(_ROWS, -(-len(self) // THREADS))))
        with closing(prefetch_tasks(self._make_tasks(AsStored(), cut, cut.steps()), self.memory)) as blocks:
            for block, _ in blocks:
                pieces.append(block.source.select(list(types)))
                done += len(block)
                if report:
                    report_progress(f"reading {self.split}, {self.name}", done, len(self))
        return self._make_block(pa.concat_tables(pieces).combine_chunks())

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the rows into memory, as a pyarrow Table."""
        names = self.resolve_columns(columns)
        return self.load(names).arrow(names)

    def numpy(self, columns: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
        """Read the rows into memory, as arrays."""
        names = self.resolve_columns(columns)
        return self.load(names).numpy(names)

    def without_labels(self) -> Part:  # type: ignore[override]
        """Read the inputs into memory."""
        return self.load([field.name for field in self.schema.of_role("input")]).without_labels()

    def _source_column(self, name: str) -> Column:
        return super()._source_column(name) if name == "row_id" else self.load((name,))._source_column(name)

    def _arrow(self, name: str) -> Any:
        return super()._arrow(name) if name in self.row_metadata else self.load((name,))._arrow(name)

    def _read_batches(self, names: Sequence[str], order: Order, cut: GlobalBatches, steps: range) -> Iterator[Batch]:
        """Yield the batches in order; a few threads read ahead, and end with the iterator. Raises `BadData` for a row
        that differs from the manifest (with its id, file and offset), `Unavailable` for bytes that are not
        available."""
        try:
            with closing(prefetch_tasks(self._make_tasks(order, cut, steps), self.memory)) as blocks:
                for block, sizes in blocks:
                    bounds = list(accumulate(sizes, initial=0))
                    columns = {name: block.column(name) for name in names}
                    yield from cut_batches(columns, np.arange(bounds[-1]), bounds, in_order=True)
        except BadData:
            forget_files(self.store.files)
            raise

    def _make_tasks(
        self, order: Order, cut: GlobalBatches, steps: range
    ) -> Iterator[tuple[int, Callable[[Event], tuple[Part, list[int]]]]]:
        """The read tasks of blocks of batches: the block in memory, and the number of rows of each batch. The first
        ones are small, so that the first batch is available soon."""
        most = self.memory // _BLOCKS
        room = min(most, self.store.least_block)
        pending: list[Positions] = []
        total = 0
        for positions, bounds in cut.positions(order, steps):
            ends = np.concatenate([[0], np.cumsum(self.store.sizes[self.rows[positions]])])
            for start, stop in pairwise(bounds):
                size = int(ends[stop] - ends[start])
                if pending and total + size > room:
                    yield total, partial(self._read_block, pending)
                    pending, total, room = [], 0, min(most, 2 * room)
                pending.append(positions[start:stop])
                total += size
        if pending:
            yield total, partial(self._read_block, pending)

    def _read_block(self, batches: Sequence[Positions], cancel: Event) -> tuple[Part, list[int]]:
        """Read and verify rows: their ids, and all columns of the source. Raises `BadData`, which names the first row
        that differs and its location."""
        import pyarrow as pa

        positions = np.concatenate(batches)
        known, rows = self.select(positions), self.rows[positions]
        table, ids = self.store.read(rows, cancel), known.row_ids
        checks, occurrences = known.source["check"].to_numpy()[known.source_indices], self.store.occurrences[rows]
        wrong = np.zeros(len(rows), bool)
        step = max(1, _AT_ONCE * len(rows) // max(1, table.nbytes))
        for start in range(0, len(rows), step):
            some, here = table.slice(start, step), slice(start, start + step)
            try:
                wrong[here] = get_digest_prefixes(compute_row_digests(some, self.schema)) != checks[here]
                wrong[here] |= compute_numbered_ids(some, self.schema, occurrences[here]) != ids[here]
            except BadData as error:
                where = self.store.describe_location(int(rows[start]))
                raise BadData(f"{error} (near {where}): the bytes are damaged; the file has to be rebuilt") from error
        if wrong.any():
            first = int(np.argmax(wrong))
            raise BadData(
                f"row {ids[first]:016x} differs from the manifest ({self.store.describe_location(int(rows[first]))}; "
                f"{int(wrong.sum())} of {len(wrong)} rows read with it): the bytes are damaged or of another version; "
                "the file has to be rebuilt"
            )
        return known._make_block(table.append_column("row_id", pa.array(ids))), list(map(len, batches))

    def _make_block(self, source: pa.Table) -> Part:
        """These rows, of which `source` has columns in memory."""
        own = {field.name: getattr(self, field.name) for field in fields(Part)}
        return Part(**own | {"source": source, "source_indices": np.arange(source.num_rows)})
