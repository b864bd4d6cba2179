"""Which byte ranges to read for some rows: neighbours together, far ones apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GAP = 1 << 17
"""Bytes between two rows that are read along rather than asked for apart: about what a connection carries in the time
that one more request takes."""

LONGEST = 1 << 23
"""Bytes of one request, where no single row is longer: what a broken connection can cost."""


@dataclass(frozen=True)
class Range:
    """Bytes [start, stop) of a file, and which of the rows asked for lie in them."""

    file: int
    start: int
    stop: int
    rows: NDArray[np.int64]


def coalesce_ranges(
    files: NDArray[np.int64], offsets: NDArray[np.int64], lengths: NDArray[np.int64]
) -> Iterator[Range]:
    """The ranges to read for rows at these places (arrays of shape (rows,)), by file and offset; each row is in one."""
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
