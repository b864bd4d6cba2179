"""Glass blur, as through frosted glass: each pixel comes from a random position nearby."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._filters import apply_gaussian_blur
from ._pixels import select_constants, to_bytes

_SMALL = ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2))
_TINY = ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2))
_LARGE = ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2))


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Blur, then shuffle pixels within a distance several times, then blur again.

    The paper says that two pixels are swapped. In the reference both become the drawn one (its swap of two NumPy views
    overwrites the first before it is read). The published images were made in this way, so this is done here too.
    """
    sigma, reach, times = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    height, width = images.shape[1:3]
    glass = to_bytes(apply_gaussian_blur(images.astype(np.float64), sigma))
    rows = np.arange(len(images))
    down = range(height - reach, reach, -1)
    across = range(width - reach, reach, -1)
    for time in range(times):
        moves = draws.below(f"moves {time}", 2 * reach, len(down), len(across), 2) - reach
        for step, y in enumerate(down):
            for column, x in enumerate(across):
                move = moves[:, step, column]
                glass[:, y, x] = glass[rows, y + move[:, 1], x + move[:, 0]]
    return to_bytes(apply_gaussian_blur(glass.astype(np.float64), sigma))
