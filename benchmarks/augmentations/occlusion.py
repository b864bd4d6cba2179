"""occlusion: a random quarter of a row (half its height, half its width) is set to its lowest pixel value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_below
from ._pixels import broadcast_per_row


def augment(values: NDArray[Any], stream: str, row_ids: NDArray[np.uint64]) -> NDArray[Any]:
    height, width = values.shape[1:3]
    covered = np.ones(1, bool)
    for axis, size in (("down", height), ("right", width)):
        half = size // 2
        start = draw_below(f"{stream}/{axis}", row_ids, size - half + 1)[:, None]
        positions = np.arange(size)
        inside = (positions >= start) & (positions < start + half)
        covered = covered & (inside[:, :, None] if axis == "down" else inside[:, None, :])
    covered = covered.reshape(len(values), height, width, *(1,) * (values.ndim - 3))
    lowest = broadcast_per_row(values.reshape(len(values), -1).min(axis=1), values)
    return np.where(covered, lowest, values)
