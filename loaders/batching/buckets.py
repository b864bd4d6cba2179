"""An epoch whose batches hold rows of like length, so that little of a batch is padding.

The rows of some batches that follow each other in an epoch's order (a pool) are sorted by length, cut into batches, and
the batches dealt out in random order: a permutation of the epoch, as it is without, and like it a pure function of
(manifest identity, part, seed, epoch) and of the lengths. Cutting it into ranks' shares changes no global batch.
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
    """The order `base` of an epoch of len(lengths) rows, with rows of like length in each batch of `batch_size`.

    name: what seeds the order of a pool's batches. lengths: of each row, (rows,). pool: batches that are sorted
    together; 1 changes nothing but the order within a batch. A last batch that is not full stays the last, and its rows
    are those that the epoch's order has there, whatever their lengths."""

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
        """The positions whose turn it is, as `Order.at`."""
        turns = np.asarray(turns, np.int64)
        size = self.pool * self.batch_size
        positions = np.empty_like(turns)
        for number in np.unique(turns // size).tolist():
            mask = turns // size == number
            positions[mask] = self._pool(number)[turns[mask] - number * size]
        return positions

    def _pool(self, number: int) -> Rows:
        """The positions of a pool in the order of its turns."""
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
    """A rank's share of the global batches `steps`: `columns`, `tokens` (rows, T) filled up with `pad`, T the longest
    of the share, and `tokens.lengths` (rows,)."""
    for positions, bounds in cut.positions(order, steps):
        for start, stop in pairwise(bounds):
            rows = positions[start:stop]
            batch = make_batch(columns, lambda _, column, rows=rows: column.take(rows), raw_text=False)  # type: ignore[misc]
            yield batch | {"tokens": tokens.take(rows, pad), "tokens.lengths": tokens.lengths[rows]}


def compute_padding_share(lengths: NDArray[np.int64], order: Order, batch_size: int) -> float:
    """The share of an epoch's places that are padding where each batch is as wide as its longest row; 0 where there
    are none."""
    rows = order.at(np.arange(len(lengths)))
    batches = np.split(rows, range(batch_size, len(rows), batch_size))
    places = sum(len(some) * int(lengths[some].max(initial=0)) for some in batches)
    return 1 - float(lengths.sum()) / places if places else 0.0
