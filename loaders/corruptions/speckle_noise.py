"""Speckle noise: multiplicative noise, stronger for brighter pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import select_constants, to_bytes

_SMALL = (0.06, 0.1, 0.12, 0.16, 0.2)
_TINY = (0.15, 0.2, 0.25, 0.3, 0.35)
_LARGE = (0.15, 0.2, 0.35, 0.45, 0.6)


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Add to each channel of each pixel a normal number of a standard deviation times its value."""
    sigma = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    return to_bytes(images + images * (draws.normal("noise", *images.shape[1:]) * sigma))
