"""Less or more saturation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import restore_channels, select_constants, to_bytes, to_three_channels

_SMALL = ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2))
_TINY = ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2))
_LARGE = ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2))


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """The saturation S of hue, saturation and value (HSV) becomes a S + b. What has no colour counts as red: grey
    pictures change only where b is not 0."""
    times, plus = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    values = to_three_channels(images).astype(np.float64)
    value = values.max(axis=-1, keepdims=True)
    spread = value - values.min(axis=-1, keepdims=True)
    saturation = np.clip(spread / np.maximum(value, 1) * times + plus, 0, 1)
    # How far a channel lies from the value, as a share of what the hue allows.
    depth = np.where(spread > 0, (value - values) / np.maximum(spread, 1), np.array([0.0, 1.0, 1.0]))
    return restore_channels(to_bytes(value - value * (saturation * depth)), images)
