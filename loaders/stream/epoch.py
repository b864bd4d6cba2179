"""An epoch of a streamed part: blocks of batches are read ahead, proven, and handed out batch by batch."""

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
"""In how many blocks an iterator's memory is used: one is handed out while others are read."""


@dataclass(frozen=True)
class RemoteRows:
    """Rows of a part that lie in `store`.

    `known` is what is known of them before any is read (its source has `row_id` and `check` only), `rows` is where each
    stands in the store, `memory` how many bytes of rows an iterator may hold, and `proven` which of them this process
    has held to their checks.
    """

    known: Part
    store: Store
    rows: NDArray[np.int64]
    memory: int
    proven: NDArray[np.bool_]


class StreamedEpoch(Iterator[Batch]):
    """A rank's and worker's share of an epoch, batch by batch. The reading ahead ends when it is used up, closed or
    forgotten."""

    def __init__(self, share: Share) -> None:
        self._share = share
        # The generator knows the share and not this object: what its own generator holds is never forgotten.
        self._batches = share.batches()

    def __next__(self) -> Batch:
        return next(self._batches)

    def close(self) -> None:
        """End the reading ahead; there are no more batches."""
        self._batches.close()

    @property
    def tally(self) -> EpochTally:
        """The tally of the rows handed out so far."""
        return self._share.tally

    @property
    def expected_tally(self) -> EpochTally:
        """The tally of all rows that this share of the epoch has to give."""
        return self._share.expected_tally()


@dataclass(frozen=True)
class _Block:
    """Some batches' rows in memory; batch i is rows bounds[i] to bounds[i + 1]."""

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
        """The batches in order; `BadData` at the end where they were not the rows owed."""
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
                f"{known.split}, {known.name}: {self.tally.rows} rows passed and {self.expected_tally().rows} were "
                "owed, "
                "or others: the epoch is not what it should be"
            )

    def expected_tally(self) -> EpochTally:
        each = (self._tally(positions) for positions, _ in self.cut.positions(self.order, self.steps))
        return sum(each, EpochTally())

    def _tally(self, positions: NDArray[np.int64]) -> EpochTally:
        known = self.part.known
        places = known.source_indices[positions]
        return EpochTally.of(*(known.source[name].to_numpy()[places] for name in ("row_id", "check")))

    def tasks(self) -> Iterator[Task[_Block]]:
        """The readings of blocks of batches. The first are small, so that the first batch comes soon."""
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
    """Some rows: their ids, and the source's columns, those of these names at least. `BadData` for a row that is not
    the manifest's."""
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
