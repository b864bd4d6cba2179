"""An epoch of a streamed part: blocks of batches are prefetched, verified, and yielded batch by batch."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData
from ..batching.columns import Column, Text, make_batch
from ..batching.order import GlobalBatches, Order
from ..part import Part
from ..remote import Store
from ..remote.prefetch import Task, prefetch_tasks
from .verify import EpochTally, Verify, check_rows

if TYPE_CHECKING:
    import pyarrow as pa

Batch = dict[str, NDArray[Any]]

_BLOCKS = 4
"""The number of blocks into which an iterator's memory is divided: one is yielded while others are read."""


@dataclass(frozen=True)
class RemoteRows:
    """Rows of a part in `store`.

    known: the part before any row is read (its source has only `row_id` and `check`). rows: the position of each row in
    the store. memory: the maximum bytes of rows of an iterator. proven: the rows that this process has verified.
    """

    known: Part
    store: Store
    rows: NDArray[np.int64]
    memory: int
    proven: NDArray[np.bool_]


class StreamedEpoch(Iterator[Batch]):
    """A rank's and worker's share of an epoch, batch by batch. Prefetching ends when it is exhausted, closed or garbage
    collected."""

    def __init__(self, share: Share) -> None:
        self._share = share
        # The generator refers to the share and not to this object, which could otherwise never be garbage collected.
        self._batches = share.batches()

    def __next__(self) -> Batch:
        return next(self._batches)

    def close(self) -> None:
        """Stop prefetching; there are no more batches."""
        self._batches.close()

    @property
    def tally(self) -> EpochTally:
        """The tally of the rows yielded so far."""
        return self._share.tally

    @property
    def expected_tally(self) -> EpochTally:
        """The tally of all rows of this share of the epoch."""
        return self._share.expected_tally()


@dataclass(frozen=True)
class _Block:
    """The rows of some batches in memory; batch i is rows bounds[i] to bounds[i + 1]."""

    part: Part
    positions: NDArray[np.int64]
    bounds: NDArray[np.int64]


@dataclass
class Share:
    """A rank's share of the global batches `steps`, and how to read it."""

    part: RemoteRows
    cut: GlobalBatches
    order: Order
    steps: range
    columns: tuple[str, ...]
    text: Text
    verify: Verify
    tally: EpochTally = field(default_factory=EpochTally)

    def batches(self) -> Generator[Batch, None, None]:
        """Yield the batches in order. Raises `BadData` at the end if they were not the expected rows."""
        try:
            yield from self._batches()
        except BadData:
            self.part.store.forget()
            raise

    def _batches(self) -> Generator[Batch, None, None]:
        with closing(prefetch_tasks(self.tasks(), self.part.memory)) as blocks:
            for block in blocks:
                columns = {name: block.part.column(name, self.text) for name in self.columns}
                for start, stop in pairwise(block.bounds.tolist()):
                    self.tally += self._tally(block.positions[start:stop])
                    read = partial(_take_rows, rows=np.arange(start, stop))
                    yield make_batch(columns, read, self.text == "bytes")
        if self.tally != self.expected_tally():
            known = self.part.known
            raise BadData(
                f"{known.split}, {known.name}: {self.tally.rows} rows were read, but {self.expected_tally().rows} "
                "were "
                "expected, or other rows"
            )

    def expected_tally(self) -> EpochTally:
        each = (self._tally(positions) for positions, _ in self.cut.positions(self.order, self.steps))
        return sum(each, EpochTally())

    def _tally(self, positions: NDArray[np.int64]) -> EpochTally:
        known = self.part.known
        places = known.source_indices[positions]
        return EpochTally.of(*(known.source[name].to_numpy()[places] for name in ("row_id", "check")))

    def tasks(self) -> Iterator[Task[_Block]]:
        """The read tasks of blocks of batches. The first ones are small, so that the first batch is available soon."""
        most = self.part.memory // _BLOCKS
        room = min(most, self.part.store.least_block)
        pending_batches: list[NDArray[np.int64]] = []
        total = 0
        for positions, bounds in self.cut.positions(self.order, self.steps):
            ends = np.concatenate([[0], np.cumsum(self.part.store.sizes(self.part.rows[positions]))])
            for start, stop in pairwise(bounds):
                size = int(ends[stop] - ends[start])
                if pending_batches and total + size > room:
                    yield total, partial(self._read, pending_batches)
                    pending_batches, total, room = [], 0, min(most, 2 * room)
                pending_batches.append(positions[start:stop])
                total += size
        if pending_batches:
            yield total, partial(self._read, pending_batches)

    def _read(self, batches: list[NDArray[np.int64]], cancel: Event) -> _Block:
        positions = np.concatenate(batches)
        known = self.part.known.select(positions)
        table = read_rows(self.part, positions, self.columns, self.verify, cancel)
        bounds = np.cumsum([0, *map(len, batches)])
        return _Block(replace(known, source=table, source_indices=np.arange(len(positions))), positions, bounds)


def read_rows(
    part: RemoteRows, positions: NDArray[np.int64], columns: Sequence[str], verify: Verify, cancel: Event
) -> pa.Table:
    """Read rows: their ids, and at least the named columns of the source. Raises `BadData` for a row that differs from
    the manifest."""
    import pyarrow as pa

    schema = part.known.schema
    known, rows = part.known.select(positions), part.rows[positions]
    verified = verify == "epoch" or (verify == "open" and not part.proven[positions].all())
    fields = [schema_field for schema_field in schema.fields if verified or schema_field.name in columns]
    table = part.store.read(rows, fields, cancel) if fields else pa.table({})
    if verified:
        checks, occurrences = known.source["check"].to_numpy()[known.source_indices], part.store.occurrences(rows)
        check_rows(
            table, schema, known.row_ids, checks, occurrences, lambda row: part.store.describe_location(int(rows[row]))
        )
        part.proven[positions] = True
    return pa.table(
        {"row_id": known.row_ids, **{schema_field.name: table[schema_field.name] for schema_field in fields}}
    )


def _take_rows(_: str, column: Column, rows: NDArray[np.int64]) -> Any:
    return column.take(rows)
