"""Zoom into the centre of images."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def zoom_in(values: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Zoom into arrays (rows, height, width, ..) by a factor of at least 1, with linear interpolation; same shape."""
    return _zoom_axis(_zoom_axis(values, factor, 1), factor, 2)


def _zoom_axis(values: NDArray[np.float64], factor: float, axis: int) -> NDArray[np.float64]:
    side = values.shape[axis]
    crop_size = math.ceil(side / factor)
    wide = round(crop_size * factor)
    at = (np.arange(side) + (wide - side) // 2) * ((crop_size - 1) / max(wide - 1, 1))
    low = np.minimum(at.astype(np.int64), crop_size - 1)
    first = (side - crop_size) // 2
    before = np.take(values, first + low, axis)
    after = np.take(values, first + np.minimum(low + 1, crop_size - 1), axis)
    share = (at - low).reshape([side if dimension == axis else 1 for dimension in range(values.ndim)])
    result: NDArray[np.float64] = before + (after - before) * share
    return result
