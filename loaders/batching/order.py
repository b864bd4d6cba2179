"""The order of an epoch, a pure function of (manifest identity, part, seed, epoch), and its division into batches.

Both are stateless, so an epoch can be interrupted at any batch and resumed by any number of ranks and workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from numbers import Integral
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits, draw_permutation
from ...core.errors import FarshiftError

STORED_ROWS = 2**24
"""Larger parts use an index permutation instead of a stored one.

Measured on one core: sorting 2^24 draws takes 3 s and 0.5 GB in every process that reads (170 ns a row, growing), the
index permutation 20 to 100 ns a row and no memory. The limit is part of the published order: it never changes.
"""

_ROUNDS = 6

_AHEAD = 2**15
"""The approximate number of positions that are computed at once: few calls, a quarter of a megabyte."""


class Order(Protocol):
    """A permutation of the positions 0 .. rows - 1 of a part."""

    def at(self, turns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions at `turns`, which count from 0 within the epoch. Same shape."""
        ...


@dataclass(frozen=True)
class AsStored:
    """The stored order."""

    def at(self, turns: NDArray[np.int64]) -> NDArray[np.int64]:
        return turns


@dataclass(frozen=True)
class StoredPermutation:
    """A permutation in memory, shape (rows,)."""

    sequence: NDArray[np.int64]

    def at(self, turns: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.sequence[turns]


@dataclass(frozen=True)
class IndexPermutation:
    """A permutation whose values are computed on demand, without memory.

    A Feistel network (Luby and Rackoff, SIAM J. Comput. 1988) of six rounds on the bits of the turn, with the draws of
    `core/draws.py` as its round function. Values outside the range are passed through it again until they are inside
    (cycle walking: Black and Rogaway, CT-RSA 2002). The two halves may differ by one bit in width, since each is
    changed in place in turn; so the domain is the next power of two, and a turn needs fewer than two passes on average.
    """

    name: str
    rows: int

    def at(self, turns: NDArray[np.int64]) -> NDArray[np.int64]:
        positions = self._through(np.asarray(turns).astype(np.uint64))
        outside = np.flatnonzero(positions >= self.rows)
        while len(outside):
            again = self._through(positions[outside])
            positions[outside] = again
            outside = outside[again >= self.rows]
        return positions.astype(np.int64)

    def _through(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        width = max(2, (self.rows - 1).bit_length())
        low_bits = np.uint64(width // 2)
        low_mask, high_mask = (np.uint64((1 << half) - 1) for half in (width // 2, width - width // 2))
        high, low = values >> low_bits, values & low_mask
        for turn in range(0, _ROUNDS, 2):
            high = high ^ (draw_bits(f"{self.name}/round {turn}", low) & high_mask)
            low = low ^ (draw_bits(f"{self.name}/round {turn + 1}", high) & low_mask)
        return (high << low_bits) | low


def make_order(identity: str, part: str, seed: int | None, epoch: int, row_ids: NDArray[np.uint64]) -> Order:
    """Return the order of an epoch of rows with these ids, shape (rows,): the stored one without a seed, else a
    permutation by a draw for each row id; of more than `STORED_ROWS` rows, one of their positions."""
    if seed is None:
        return AsStored()
    name = f"{identity}/{part}/{seed}/{epoch}"
    if len(row_ids) > STORED_ROWS:
        return IndexPermutation(name, len(row_ids))
    return StoredPermutation(draw_permutation(name, row_ids))


@dataclass(frozen=True)
class GlobalBatches:
    """An epoch of `rows` turns, divided into global batches of `batch_size`; `rank` of `world` gets a share of each.

    Global batch t is the same set of rows for every world. A share is contiguous; all shares of a full batch have
    batch_size / world rows. A shorter last batch (none with `drop_last`) is shared as evenly as possible: shares differ
    by at most one row, and if it has fewer rows than ranks some are empty, so that every rank has the same number of
    batches. Raises `FarshiftError` if the numbers are inconsistent.
    """

    rows: int
    batch_size: int
    rank: int = 0
    world: int = 1
    drop_last: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.batch_size, Integral) or self.batch_size < 1:
            raise FarshiftError(f"batch_size must be a whole number from 1, not {self.batch_size!r}")
        check_index("rank", self.rank, "world", self.world)
        if self.batch_size % self.world:
            raise FarshiftError(
                f"batch_size {self.batch_size} (the global batch, over all ranks) is not divisible by {self.world} "
                f"ranks: use a multiple of {self.world}"
            )

    @property
    def count(self) -> int:
        """The number of global batches in an epoch; every rank has a share of each."""
        return self.rows // self.batch_size if self.drop_last else -(-self.rows // self.batch_size)

    def share(self, batch: int) -> tuple[int, int]:
        """The turns [start, stop) of this rank in a global batch."""
        first = batch * self.batch_size
        size = min(self.batch_size, self.rows - first)
        return first + size * self.rank // self.world, first + size * (self.rank + 1) // self.world

    def steps(self, start: int = 0, worker: int = 0, workers: int = 1) -> range:
        """Return the global batches from `start` on of one of `workers`, assigned in turn; worker 0 has `start`."""
        check_index("worker", worker, "workers", workers)
        if start < 0:
            raise FarshiftError(f"start must be a global batch, 0 or later, not {start}")
        return range(start + worker, self.count, workers)

    def positions(self, order: Order, steps: Sequence[int]) -> Iterator[tuple[NDArray[np.int64], list[int]]]:
        """Yield this rank's positions in the batches `steps`, several batches at once: (positions, bounds), where batch
        i is positions[bounds[i]:bounds[i + 1]]. The cost of an order, or of a device, is mainly per call, not per row.
        """
        together = max(1, _AHEAD * self.world // self.batch_size)
        for first in range(0, len(steps), together):
            shares = [self.share(step) for step in steps[first : first + together]]
            bounds = [0, *accumulate(stop - start for start, stop in shares)]
            first_turn, end = shares[0][0], shares[-1][1]
            if bounds[-1] == end - first_turn:  # consecutive whole batches
                turns = np.arange(first_turn, end)
            else:
                turns = np.concatenate([np.arange(start, stop) for start, stop in shares])
            yield order.at(turns), bounds


def check_index(what: str, number: int, count_name: str, count: int) -> None:
    """Raise `FarshiftError` for a rank or worker that is not in 0 .. count - 1."""
    if count < 1:
        raise FarshiftError(f"{count_name} must be at least 1, not {count}")
    if not 0 <= number < count:
        raise FarshiftError(f"{what} must be in 0..{count - 1} where {count_name} is {count}, not {number}")
