"""noise: each pixel moves by up to a quarter of its row's range."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import bits, uniform
from ._pixels import like, span

REACH = 0.25


def augment(values: NDArray[Any], stream: str, row_ids: NDArray[np.uint64]) -> NDArray[Any]:
    pixels = int(np.prod(values.shape[1:]))
    # A counter for each pixel of each row: the row's own bits, and the pixel's number on top.
    counters = np.add.outer(bits(stream, row_ids), np.arange(pixels, dtype=np.uint64))
    drawn = uniform(f"{stream}/pixels", counters).reshape(values.shape)
    return like(values, values + REACH * span(values) * (2 * drawn - 1))
