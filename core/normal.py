"""Standard normal draws that are the same bits on every platform.

A logarithm or a cosine may differ in its last digit between two machines, and with it a frozen row. Here a draw is the
sum of twelve uniform numbers less six (Irwin and Hall 1927; variance 1, excess kurtosis -0.1, never beyond 6), in whole
numbers of 2^-16, so that it is exact in float32 too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .draws import draw_bits

UNIT = 2**16
"""A draw of `draw_normal_units` is a whole number of 1 / UNIT."""

_WORDS = 3
_LANES = 4


def draw_normal_units(name: str, count: int) -> NDArray[np.int64]:
    """The first `count` draws of the stream called `name`, in units of 1 / `UNIT`; shape (count,)."""
    words = draw_bits(name, np.arange(count * _WORDS, dtype=np.uint64)).reshape(count, _WORDS)
    total = np.zeros(count, np.int64)
    for lane in range(_LANES):
        uniform = (words >> np.uint64(16 * lane)) & np.uint64(UNIT - 1)
        total += uniform.astype(np.int64).sum(axis=1)
    # The mean of twelve numbers in 0..65535 is half a unit a number under six times 65536.
    return total - _WORDS * _LANES * (UNIT - 1) // 2
