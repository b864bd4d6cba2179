"""Gaussian blur."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._filters import apply_gaussian_blur
from ._pixels import select_constants, to_bytes

_SMALL = (0.4, 0.6, 0.7, 0.8, 1.0)
_TINY = (0.5, 0.75, 1.0, 1.25, 1.5)
_LARGE = (1.0, 2.0, 3.0, 4.0, 6.0)


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Blur each channel by a Gaussian with a width in pixels."""
    return to_bytes(
        apply_gaussian_blur(
            images.astype(np.float64), select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
        )
    )
