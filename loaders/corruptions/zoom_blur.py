"""Zoom blur, as of a camera that moves towards the scene."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._filters import zoom_in
from ._pixels import select_constants, to_bytes

_SMALL = ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01))
_TINY = ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01))
_LARGE = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Average the image and its enlargements by 1, 1 + step .. up to a bound."""
    total = images.astype(np.float64)
    factors = list_enlargements(*select_constants(images, severity, constants, _SMALL, _TINY, _LARGE))
    for factor in factors:
        total += zoom_in(images.astype(np.float64), factor)
    return to_bytes(total / (len(factors) + 1))


def list_enlargements(bound: float, step: float) -> list[float]:
    """Return 1, 1 + step .. below the bound, as `numpy.arange`, which due to rounding reaches some of the bounds."""
    exact_step = (1 + step) - 1
    return [1 + number * exact_step for number in range(math.ceil((bound - 1) / step))]
