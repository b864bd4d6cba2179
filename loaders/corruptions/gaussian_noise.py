"""Gaussian noise, as in low light."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import select_constants, to_bytes

_SMALL = (0.04, 0.06, 0.08, 0.09, 0.10)
_TINY = (0.04, 0.08, 0.12, 0.15, 0.18)
_LARGE = (0.08, 0.12, 0.18, 0.26, 0.38)


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Add normal noise of a standard deviation (1 is white) to each channel of each pixel."""
    sigma = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    return to_bytes(images + draws.normal("noise", *images.shape[1:]) * (255 * sigma))
