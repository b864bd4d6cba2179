"""Choose the byte ranges to read for some rows: near rows share one range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GAP = 1 << 17
"""The maximum gap in bytes between rows of one range: about what a connection transfers in the time of another
request."""

LONGEST = 1 << 23
"""The maximum size of a request in bytes, unless a single row is longer: the most that a broken connection loses."""


@dataclass(frozen=True)
class Range:
    """Bytes [start, stop) of a file, and the requested rows in them."""

    file: int
    start: int
    stop: int
    rows: NDArray[np.int64]


def coalesce_ranges(
    files: NDArray[np.int64], offsets: NDArray[np.int64], lengths: NDArray[np.int64]
) -> Iterator[Range]:
    """Return the ranges to read for rows at these positions (arrays of shape (rows,)), by file and offset; each row is
    in one."""
    order = np.lexsort((offsets, files))
    first, start, stop, file = 0, 0, 0, -1
    for turn, (its_file, offset, length) in enumerate(
        zip(files[order].tolist(), offsets[order].tolist(), lengths[order].tolist(), strict=True)
    ):
        end = offset + length
        if its_file != file or offset > stop + GAP or max(stop, end) - start > LONGEST:
            if turn:
                yield Range(file, start, stop, order[first:turn])
            first, start, stop, file = turn, offset, end, its_file
        stop = max(stop, end)
    if len(order):
        yield Range(file, start, stop, order[first:])
