"""A part that is read without a local copy: the same batches in the same order, with every row verified.

An epoch is read in blocks of batches, which are prefetched, verified, and yielded batch by batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits
from ...core.errors import BadData, FarshiftError
from ...splits.rows import compute_numbered_ids, compute_row_digests, get_digest_prefixes
from ...splits.schema import Field, Schema
from ..batching.columns import Column, Text, check_text, make_batch
from ..batching.order import AsStored, GlobalBatches, Order
from ..part import Part
from ..remote.files import File, forget_files
from ..remote.prefetch import Task, prefetch_tasks

if TYPE_CHECKING:
    import pyarrow as pa

    from ..batching.input_format import AudioSpec, ImageSpec
    from ..batching.torch_stream import TorchStream

Batch = dict[str, NDArray[Any]]

_BLOCKS = 4
"""The number of blocks into which an iterator's memory is divided: one is yielded while others are read."""

_ROWS = 256
"""Rows of which a block read in stored order has a multiple."""


Verify = Literal["epoch", "open", "never"]
"""When row ids and checks are recomputed: in every epoch, in the first one after opening, or never."""

_AT_ONCE = 1 << 20
"""The bytes of rows hashed at once: their canonical form takes about ten times as much memory."""


def check_verify(verify: str) -> None:
    if verify not in get_args(Verify):
        raise FarshiftError(f"verify must be 'epoch', 'open' or 'never', not {verify!r}")


@dataclass(frozen=True)
class EpochTally:
    """The number of rows that were read, and the sum modulo 2^64 of a 64-bit mix of each one's id and check.

    Sums do not depend on order, and those of disjoint shares add up (an incremental multiset hash: Bellare and
    Micciancio, EUROCRYPT 1997): a lost, repeated or exchanged row changes the sum, except with probability 2^-64. It
    detects mistakes; each row's own digest detects forgery.
    """

    rows: int = 0
    digest: int = 0

    @classmethod
    def of(cls, row_ids: NDArray[np.uint64], checks: NDArray[np.uint64]) -> EpochTally:
        """Return the tally of rows with these ids and checks, shape (rows,)."""
        mixed = draw_bits("epoch tally/row", row_ids ^ draw_bits("epoch tally/check", checks))
        return cls(len(row_ids), int(np.add.reduce(mixed, dtype=np.uint64)))

    def __add__(self, other: EpochTally) -> EpochTally:
        return EpochTally(self.rows + other.rows, (self.digest + other.digest) % 2**64)


def check_rows(
    table: pa.Table,
    schema: Schema,
    row_ids: NDArray[np.uint64],
    checks: NDArray[np.uint64],
    occurrences: NDArray[np.int64],
    locate: Callable[[int], str],
) -> None:
    """Check rows against their ids and checks. Raises `BadData`, which names the first difference and its location."""
    wrong = np.zeros(table.num_rows, bool)
    step = max(1, _AT_ONCE * table.num_rows // max(1, table.nbytes))
    for start in range(0, table.num_rows, step):
        some, rows = table.slice(start, step), slice(start, start + step)
        try:
            wrong[rows] = get_digest_prefixes(compute_row_digests(some, schema)) != checks[rows]
            wrong[rows] |= compute_numbered_ids(some, schema, occurrences[rows]) != row_ids[rows]
        except BadData as error:
            raise BadData(
                f"{error} (near {locate(start)}): the bytes are damaged; the file has to be rebuilt"
            ) from error
    if wrong.any():
        first = int(np.argmax(wrong))
        raise BadData(
            f"row {row_ids[first]:016x} differs from the manifest ({locate(first)}; {int(wrong.sum())} of "
            f"{len(wrong)} rows read with it): the bytes are damaged or of another version; the file has to be rebuilt"
        )


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
    def read(self, rows: NDArray[np.int64], fields: Sequence[Field], cancel: Event) -> pa.Table:
        """Read fields of rows, in the given order and with the fields' types; the label is the source's own."""


@dataclass(frozen=True)
class StreamedPart:
    """A part whose rows are read from `store` on demand. Batches, order, columns and states are those of the local
    `Part`, so the two are interchangeable.

    known: the part before any row is read (its source has only `row_id` and `check`). rows: the position of each row in
    the store. memory: the maximum bytes of rows of an iterator. proven: the rows that this process has verified.
    """

    known: Part
    store: Store
    rows: NDArray[np.int64]
    memory: int
    proven: NDArray[np.bool_]
    verify: Verify = "epoch"

    def __len__(self) -> int:
        return len(self.known)

    def __repr__(self) -> str:
        return f"StreamedPart({self.split}, {self.name}: {len(self):,} rows; {', '.join(self.columns)})"

    @property
    def split(self) -> str:
        return self.known.split

    @property
    def identity(self) -> str:
        return self.known.identity

    @property
    def name(self) -> str:
        return self.known.name

    @property
    def schema(self) -> Schema:
        return self.known.schema

    @property
    def columns(self) -> tuple[str, ...]:
        return self.known.columns

    @property
    def row_ids(self) -> NDArray[np.uint64]:
        """The rows' ids, ascending, shape (rows,)."""
        return self.known.row_ids

    def resolve_columns(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """Return the named columns, or all. Raises `UnknownName` for an unknown one."""
        return self.known.resolve_columns(columns)

    def select(self, positions: NDArray[Any]) -> StreamedPart:
        """Select the rows at `positions` (indices or a boolean mask), in the given order."""
        return replace(
            self, known=self.known.select(positions), rows=self.rows[positions], proven=self.proven[positions]
        )

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
        text: Text = "str",
        verify: Verify | None = None,
    ) -> StreamedEpoch:
        """Iterate over one epoch in dictionaries of arrays, as `Part.batches` with the same arguments, including
        `text`: by default all texts are `str`, since a stream has no categories. Rows are prefetched by a few threads
        that end with the iterator.

        `verify="epoch"` recomputes every row's id and check from its content; `"open"` only if this process has not
        done so since the part was opened; `"never"` checks only lengths and types, and reads only the requested
        columns. At the end the yielded rows have to be those of this rank and worker. Default: `self.verify`.

        Raises `FarshiftError` if the numbers are inconsistent, `UnknownName` for an unknown column; and during
        iteration `BadData` for a row that differs from the manifest (with its id, file and offset), `Unavailable` for
        bytes that are not available.
        """
        check_text(text)
        if text == "codes":
            raise FarshiftError(
                f"{self!r}: text='codes' needs all rows of a column, which a stream does not have: use text='str'"
            )
        read = self._verified(verify)
        cut = GlobalBatches(len(self), batch_size, rank, world, drop_last)
        order, steps = self.known.order(seed, epoch), cut.steps(start, worker, workers)
        return StreamedEpoch(_Share(read, cut, order, steps, self.resolve_columns(columns), text))

    def torch(
        self,
        batch_size: int,
        seed: int | None = 0,
        epoch: int = 0,
        drop_last: bool = False,
        columns: Sequence[str] | None = None,
        *,
        text: Text = "str",
        rank: int | None = None,
        world: int | None = None,
        verify: Verify | None = None,
        images: ImageSpec = "bytes",
        audio: AudioSpec = "bytes",
    ) -> TorchStream:
        """Return the part as an `IterableDataset` of batches, for `DataLoader(stream, batch_size=None)`. Ranks, workers
        and states are as in `TorchStream`, images and audio as in `Part.torch`. Each worker has its own connections and
        threads."""
        from ..batching.torch_stream import TorchStream

        read = self._verified(verify)
        return TorchStream(read, batch_size, seed, epoch, drop_last, columns, text, rank, world, images, audio)

    def tally(self, batch_size: int, seed: int | None = None, epoch: int = 0, drop_last: bool = False) -> EpochTally:
        """Return the expected sum of the tallies of all ranks' and workers' iterators of an epoch."""
        return self.batches(batch_size, seed, epoch, drop_last).expected_tally

    def read_blocks(self, columns: tuple[str, ...]) -> Generator[pa.Table, None, None]:
        """Read all rows in stored order, block by block, with prefetching: their ids, and at least the named columns of
        the source. Each row is verified."""
        cut = GlobalBatches(len(self), _ROWS, 0, 1, False)
        share = _Share(self, cut, AsStored(), cut.steps(0, 0, 1), columns, "str")
        with closing(prefetch_tasks(share.tasks(), self.memory)) as blocks:
            for block, _ in blocks:
                yield block.source

    def read_rows(self, positions: NDArray[np.int64], columns: Sequence[str], cancel: Event) -> pa.Table:
        """Read rows: their ids, and at least the named columns of the source. Raises `BadData` for a row that differs
        from the manifest."""
        import pyarrow as pa

        known, rows = self.known.select(positions), self.rows[positions]
        verified = self.verify == "epoch" or (self.verify == "open" and not self.proven[positions].all())
        fields = [field for field in self.schema.fields if verified or field.name in columns]
        table = self.store.read(rows, fields, cancel) if fields else pa.table({})
        if verified:
            checks, occurrences = known.source["check"].to_numpy()[known.source_indices], self.store.occurrences[rows]
            check_rows(
                table,
                self.schema,
                known.row_ids,
                checks,
                occurrences,
                lambda row: self.store.describe_location(int(rows[row])),
            )
            self.proven[positions] = True
        return pa.table({"row_id": known.row_ids, **{field.name: table[field.name] for field in fields}})

    def _verified(self, verify: Verify | None) -> StreamedPart:
        read = self if verify is None else replace(self, verify=verify)
        check_verify(read.verify)
        return read


class StreamedEpoch(Iterator[Batch]):
    """A rank's and worker's share of an epoch, batch by batch. Prefetching ends when it is exhausted, closed or garbage
    collected."""

    def __init__(self, share: _Share) -> None:
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
        return self._share.compute_expected_tally()


_Block = tuple[Part, list[NDArray[np.int64]]]
"""The rows of some batches in memory, and the positions of each batch's rows in the streamed part."""


@dataclass
class _Share:
    """A rank's share of the global batches `steps`, and how to read it."""

    part: StreamedPart
    cut: GlobalBatches
    order: Order
    steps: range
    columns: tuple[str, ...]
    text: Text
    tally: EpochTally = field(default_factory=EpochTally)

    def batches(self) -> Generator[Batch, None, None]:
        """Yield the batches in order. Raises `BadData` at the end if they were not the expected rows."""
        known = self.part.known
        try:
            with closing(prefetch_tasks(self.tasks(), self.part.memory)) as blocks:
                for block, batches in blocks:
                    columns = {name: block.column(name, self.text) for name in self.columns}
                    start = 0
                    for positions in batches:
                        self.tally += self._tally(positions)
                        rows = np.arange(start, start + len(positions))
                        yield make_batch(columns, partial(_take_rows, rows=rows), self.text == "bytes")
                        start += len(positions)
            if self.tally != (expected := self.compute_expected_tally()):
                raise BadData(
                    f"{known.split}, {known.name}: {self.tally.rows} rows were read, but {expected.rows} were "
                    "expected, or other rows"
                )
        except BadData:
            forget_files(self.part.store.files)
            raise

    def compute_expected_tally(self) -> EpochTally:
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
            ends = np.concatenate([[0], np.cumsum(self.part.store.sizes[self.part.rows[positions]])])
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
        table = self.part.read_rows(positions, self.columns, cancel)
        known = self.part.known.select(positions)
        return replace(known, source=table, source_indices=np.arange(len(positions))), batches


def _take_rows(_: str, column: Column, rows: NDArray[np.int64]) -> Any:
    return column.take(rows)
