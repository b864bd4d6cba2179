"""Reduced contrast."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import select_constants, to_bytes

_SMALL = (0.75, 0.5, 0.4, 0.3, 0.15)
_TINY = (0.4, 0.3, 0.2, 0.1, 0.05)
_LARGE = (0.4, 0.3, 0.2, 0.1, 0.05)


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Scale the difference of each channel from its mean over the image by a factor."""
    share = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    height, width = images.shape[1:3]
    mean = images.sum(axis=(1, 2), keepdims=True, dtype=np.int64) / (height * width)
    return to_bytes((images - mean) * share + mean)
