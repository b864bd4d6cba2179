"""Reduced or increased saturation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import restore_channels, select_constants, to_bytes, to_three_channels

_SMALL = ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2))
_TINY = ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2))
_LARGE = ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2))


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Change the saturation S of HSV to a S + b. Colourless pixels count as red, so grey images change only if b is not
    0."""
    times, plus = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    values = to_three_channels(images).astype(np.float64)
    value = values.max(axis=-1, keepdims=True)
    spread = value - values.min(axis=-1, keepdims=True)
    saturation = np.clip(spread / np.maximum(value, 1) * times + plus, 0, 1)
    # The distance of a channel from the value, as a fraction of the maximum for the hue.
    depth = np.where(spread > 0, (value - values) / np.maximum(spread, 1), np.array([0.0, 1.0, 1.0]))
    return restore_channels(to_bytes(value - value * (saturation * depth)), images)
