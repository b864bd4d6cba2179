"""Snow: flakes blown along a direction, over a whitened image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._filters import apply_motion_blur, zoom_in
from ._pixels import select_constants, to_bytes, to_luminance

_SMALL = (
    (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
    (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
    (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
    (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
    (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
)
_TINY = (
    (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
    (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
    (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
    (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
    (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
)
_LARGE = (
    (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
)


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Draw normal numbers (mean, deviation), zoom in, set those below a bound to 0, and blur the rest (radius, sigma)
    along an angle between -135 and -45 degrees. Add them twice, once rotated by 180 degrees, to the image, of which a
    fraction is not whitened."""
    mean, deviation, zoom, least, radius, sigma, image_share = select_constants(
        images, severity, constants, _SMALL, _TINY, _LARGE
    )
    flakes = zoom_in(mean + deviation * draws.normal("flakes", *images.shape[1:3]), zoom)
    flakes[flakes < least] = 0
    blown = apply_motion_blur(to_bytes(flakes * 255)[..., None], int(radius), sigma, draws.between("angle", -135, -45))
    white = np.maximum(images, to_luminance(images) * 1.5 + 127.5)
    return to_bytes(image_share * images + (1 - image_share) * white + blown + blown[:, ::-1, ::-1])
