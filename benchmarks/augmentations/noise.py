"""noise: each pixel moves by up to a quarter of its row's range."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits, draw_uniform
from ._pixels import clip_to_original, compute_pixel_range

REACH = 0.25


def augment(values: NDArray[Any], stream: str, row_ids: NDArray[np.uint64]) -> NDArray[Any]:
    pixels = int(np.prod(values.shape[1:]))
    # A counter for each pixel of each row: the row's bits plus the pixel's index.
    counters = np.add.outer(draw_bits(stream, row_ids), np.arange(pixels, dtype=np.uint64))
    drawn = draw_uniform(f"{stream}/pixels", counters).reshape(values.shape)
    return clip_to_original(values, values + REACH * compute_pixel_range(values) * (2 * drawn - 1))
