"""translation: a row moves by an eighth of its height and width (at least a pixel) in a random direction; the vacated
area is filled with its lowest pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_below

_DIRECTIONS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))


def augment(values: NDArray[Any], stream: str, row_ids: NDArray[np.uint64]) -> NDArray[Any]:
    height, width = values.shape[1:3]
    down, right = max(1, height // 8), max(1, width // 8)
    lowest = values.min(axis=tuple(range(1, values.ndim)), keepdims=True)
    moved = np.broadcast_to(lowest, values.shape).copy()
    drawn = draw_below(stream, row_ids, len(_DIRECTIONS))
    for number, (y, x) in enumerate(_DIRECTIONS):
        rows = np.flatnonzero(drawn == number)
        target = moved[rows]
        target[:, _make_shift_slice(y * down, height), _make_shift_slice(x * right, width)] = values[rows][
            :, _make_shift_slice(-y * down, height), _make_shift_slice(-x * right, width)
        ]
        moved[rows] = target
    return moved


def _make_shift_slice(step: int, size: int) -> slice:
    """The slice to which pixels moved by `step` go; with `-step`, the slice that they come from."""
    return slice(max(0, step), size + min(0, step))
