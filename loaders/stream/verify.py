"""Verify streamed rows: each one has the id and check in the manifest, and all of them are read exactly once.

A reader knows its rows before it reads any: the order of an epoch is a permutation of the part, divided into global
batches that are shared by ranks and workers. If every reader verifies its share, each row of the part was read exactly
once. `EpochTally` allows to check the union: tallies of disjoint shares add up to that of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits
from ...core.errors import BadData, FarshiftError
from ...splits.rows import compute_numbered_ids, compute_row_digests, get_digest_prefixes
from ...splits.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

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
