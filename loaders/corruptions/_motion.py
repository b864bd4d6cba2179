"""Motion blur as in ImageMagick: half a Gaussian along a line of pixels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ._filters import pad_sides, round_weights


def apply_motion_blur(
    values: NDArray[np.uint8], radius: int, sigma: float, degrees: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Blur images (rows, height, width, channels), each along its own angle (rows,), and truncate to integers.

    The weights are a Gaussian at 0, 1 .. 2 radius pixels from the blurred one; positions on the line are rounded to
    whole pixels; the last pixel is repeated outside. This is MotionBlurImage of ImageMagick 6.
    """
    steps = 2 * radius + 1
    half = [math.exp(-0.5 * (at / sigma) ** 2) for at in range(steps)]
    weights = round_weights(np.array([*[0.0] * (steps - 1), *half]) / math.fsum(half))[steps - 1 :]
    height, width = values.shape[1:3]
    padded = pad_sides(values.astype(np.float64), steps, steps, "edge")
    blurred = np.zeros(values.shape)
    for row, angle in enumerate(degrees.tolist()):
        right, down = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        for at, weight in enumerate(weights.tolist()):
            x, y = steps + math.ceil(at * right - 0.5), steps + math.ceil(at * down - 0.5)
            blurred[row] += padded[row, y : y + height, x : x + width] * weight
    return np.floor(blurred)
