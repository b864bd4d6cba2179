"""Increased brightness."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import select_constants, to_bytes

_SMALL = (0.05, 0.1, 0.15, 0.2, 0.3)
_TINY = (0.1, 0.2, 0.3, 0.4, 0.5)
_LARGE = (0.1, 0.2, 0.3, 0.4, 0.5)


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Add a constant to the value V of HSV (1 is white)."""
    values = images.astype(np.float64)
    value = values.max(axis=-1, keepdims=True)
    brighter = np.minimum(value + 255 * select_constants(images, severity, constants, _SMALL, _TINY, _LARGE), 255)
    # With constant hue and saturation all channels keep their ratio; black has none, and becomes grey.
    return to_bytes(np.where(values == value, brighter, values * brighter / np.maximum(value, 1)))
