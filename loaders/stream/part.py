"""A part that is read without a local copy: the same batches in the same order, with every row verified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError
from ...splits.schema import Schema
from ..batching.columns import Text, check_text
from ..batching.order import GlobalBatches
from .epoch import RemoteRows, Share, StreamedEpoch
from .verify import EpochTally, Verify, check_verify

if TYPE_CHECKING:
    from ..batching.input_format import AudioSpec, ImageSpec
    from ..batching.torch_stream import TorchStream


@dataclass(frozen=True)
class StreamedPart(RemoteRows):
    """A part whose rows are read from `store` on demand. Batches, order, columns and states are those of the local
    `Part`, so the two are interchangeable."""

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
        verify_mode = self.verify if verify is None else verify
        check_text(text)
        if text == "codes":
            raise FarshiftError(
                f"{self!r}: text='codes' needs all rows of a column, which a stream does not have: use text='str'"
            )
        check_verify(verify_mode)
        cut = GlobalBatches(len(self), batch_size, rank, world, drop_last)
        steps = cut.steps(start, worker, workers)
        order = self.known.order(seed, epoch)
        return StreamedEpoch(Share(self, cut, order, steps, self.resolve_columns(columns), text, verify_mode))

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

        read = self if verify is None else replace(self, verify=verify)
        check_verify(read.verify)
        return TorchStream(read, batch_size, seed, epoch, drop_last, columns, text, rank, world, images, audio)

    def tally(self, batch_size: int, seed: int | None = None, epoch: int = 0, drop_last: bool = False) -> EpochTally:
        """Return the expected sum of the tallies of all ranks' and workers' iterators of an epoch."""
        return self.batches(batch_size, seed, epoch, drop_last).expected_tally
