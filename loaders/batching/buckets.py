"""An epoch order whose batches have rows of similar length, to reduce padding.

The rows of several consecutive batches (a pool) are sorted by length, cut into batches, and the batches are shuffled.
The result is a permutation of the epoch and a pure function of (manifest identity, part, seed, epoch) and of the
lengths. Cutting it into ranks' shares changes no global batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits
from ...core.errors import FarshiftError
from .columns import Column, make_batch
from .order import GlobalBatches, Order
from .tokens import Tokens

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class BucketedOrder:
    """The order `base` of an epoch of len(lengths) rows, with rows of similar length in each batch of `batch_size`.

    name: seeds the order of a pool's batches. lengths: of each row, shape (rows,). pool: the number of batches that are
    sorted together; 1 changes only the order within a batch. An incomplete last batch stays last and keeps its rows."""

    name: str
    base: Order
    lengths: NDArray[np.int64]
    batch_size: int
    pool: int = 64

    def __post_init__(self) -> None:
        for what, number in (("batch_size", self.batch_size), ("pool", self.pool)):
            if number < 1:
                raise FarshiftError(f"{what} must be at least 1, not {number}")

    def at(self, turns: Rows) -> Rows:
        """Return the positions at `turns`, as `Order.at`."""
        turns = np.asarray(turns, np.int64)
        size = self.pool * self.batch_size
        positions = np.empty_like(turns)
        for number in np.unique(turns // size).tolist():
            mask = turns // size == number
            positions[mask] = self._pool(number)[turns[mask] - number * size]
        return positions

    def _pool(self, number: int) -> Rows:
        """The positions of a pool in order of its turns."""
        first = number * self.pool * self.batch_size
        last = min(len(self.lengths), first + self.pool * self.batch_size)
        rows = self.base.at(np.arange(first, last))
        full = len(rows) // self.batch_size
        full_batches, rest = rows[: full * self.batch_size], rows[full * self.batch_size :]
        batches = self._sorted(full_batches).reshape(full, self.batch_size)
        draws = draw_bits(f"{self.name}/pool {number}", np.arange(full, dtype=np.uint64))
        return np.concatenate([batches[np.argsort(draws, kind="stable")].reshape(-1), self._sorted(rest)])

    def _sorted(self, rows: Rows) -> Rows:
        return rows[np.argsort(self.lengths[rows], kind="stable")]


def iterate_token_batches(
    columns: Mapping[str, Column], tokens: Tokens, order: Order, cut: GlobalBatches, steps: range, pad: int
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield a rank's share of the global batches `steps`: `columns`, `tokens` (rows, T) padded with `pad`, where T is
    the longest row of the share, and `tokens.lengths` (rows,)."""
    for positions, bounds in cut.positions(order, steps):
        for start, stop in pairwise(bounds):
            rows = positions[start:stop]
            batch = make_batch(columns, lambda _, column, rows=rows: column.take(rows), raw_text=False)  # type: ignore[misc]
            yield batch | {"tokens": tokens.take(rows, pad), "tokens.lengths": tokens.lengths[rows]}


def compute_padding_share(lengths: NDArray[np.int64], order: Order, batch_size: int) -> float:
    """Return the fraction of an epoch's token positions that are padding, if each batch is padded to its longest row; 0
    for an empty epoch."""
    rows = order.at(np.arange(len(lengths)))
    batches = np.split(rows, range(batch_size, len(rows), batch_size))
    places = sum(len(some) * int(lengths[some].max(initial=0)) for some in batches)
    return 1 - float(lengths.sum()) / places if places else 0.0
