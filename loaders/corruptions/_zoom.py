"""The middle of pictures, made larger to fill them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def zoomed(values: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Arrays (rows, height, width, ..) zoomed in by a factor of at least 1, linear between pixels; the same shape."""
    return _along(_along(values, factor, 1), factor, 2)


def _along(values: NDArray[np.float64], factor: float, axis: int) -> NDArray[np.float64]:
    side = values.shape[axis]
    kept = math.ceil(side / factor)
    wide = round(kept * factor)
    at = (np.arange(side) + (wide - side) // 2) * ((kept - 1) / max(wide - 1, 1))
    low = np.minimum(at.astype(np.int64), kept - 1)
    first = (side - kept) // 2
    before = np.take(values, first + low, axis)
    after = np.take(values, first + np.minimum(low + 1, kept - 1), axis)
    share = (at - low).reshape([side if one == axis else 1 for one in range(values.ndim)])
    made: NDArray[np.float64] = before + (after - before) * share
    return made
