"""Impulse noise: salt and pepper, as from bit errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import select_constants

_SMALL = (0.01, 0.02, 0.03, 0.05, 0.07)
_TINY = (0.01, 0.02, 0.05, 0.08, 0.14)
_LARGE = (0.03, 0.06, 0.09, 0.17, 0.27)


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Set a fraction of all channels of all pixels to 0 or 255, with equal probability."""
    share = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    struck = draws.uniform("struck", *images.shape[1:]) <= share
    salt = draws.uniform("salt", *images.shape[1:]) <= 0.5
    return np.where(struck, np.where(salt, np.uint8(255), np.uint8(0)), images)
