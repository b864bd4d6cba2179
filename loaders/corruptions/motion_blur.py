"""Motion blur, along a random direction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._filters import apply_motion_blur
from ._pixels import select_constants, to_bytes

_SMALL = ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))
_TINY = ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3))
_LARGE = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Blur by half a Gaussian (radius, sigma) along an angle between -45 and 45 degrees."""
    radius, sigma = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    return to_bytes(apply_motion_blur(images, radius, sigma, draws.between("angle", -45, 45)))
