"""Image filters: sums in a fixed order, with weights that are multiples of 2^-30; and zoom."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

_UNIT = 2**30

Border = Literal["edge", "symmetric", "reflect"]
"""The padding outside: the last pixel, or the mirrored image with or without its last pixel."""


def round_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round weights to multiples of 2^-30, with the rounding error added to the middle one, so that weights with sum 1
    do not change a uniform grey."""
    units = np.rint(weights * _UNIT)
    units[tuple(side // 2 for side in units.shape)] += round(math.fsum(weights.ravel().tolist()) * _UNIT) - units.sum()
    return units / _UNIT


def make_gaussian_weights(sigma: float, radius: int) -> NDArray[np.float64]:
    """A Gaussian at -radius .. radius, shape (2 radius + 1,)."""
    weights = np.array([math.exp(-0.5 * (at / sigma) ** 2) for at in range(-radius, radius + 1)])
    return round_weights(weights / math.fsum(weights.tolist()))


def apply_gaussian_blur(
    values: NDArray[np.float64], sigma: float, border: Border = "edge", truncate: float = 4
) -> NDArray[np.float64]:
    """Blur arrays (rows, height, width, ..) along height and width by a Gaussian truncated at `truncate` sigma."""
    radius = int(truncate * sigma + 0.5)
    if sigma <= 0 or radius == 0:
        return values
    weights = make_gaussian_weights(sigma, radius)
    return apply_filter(apply_filter(values, weights[:, None], border), weights[None, :], border)


def apply_filter(values: NDArray[np.float64], weights: NDArray[np.float64], border: Border) -> NDArray[np.float64]:
    """Correlate arrays (rows, height, width, ..) with centred weights (odd, odd)."""
    down, across = (side // 2 for side in weights.shape)
    height, width = values.shape[1:3]
    padded = pad_sides(values, down, across, border)
    total = np.zeros(values.shape)
    for row, column in np.argwhere(weights):
        total += padded[:, row : row + height, column : column + width] * weights[row, column]
    return total


def pad_sides(values: NDArray[np.float64], down: int, across: int, border: Border) -> NDArray[np.float64]:
    """Pad arrays (rows, height, width, ..) by `down` rows and `across` columns on each side."""
    return np.pad(values, [(0, 0), (down, down), (across, across), *[(0, 0)] * (values.ndim - 3)], mode=border)


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


def zoom_in(values: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Zoom into arrays (rows, height, width, ..) by a factor of at least 1, with linear interpolation; same shape."""
    return _zoom_axis(_zoom_axis(values, factor, 1), factor, 2)


def _zoom_axis(values: NDArray[np.float64], factor: float, axis: int) -> NDArray[np.float64]:
    side = values.shape[axis]
    crop_size = math.ceil(side / factor)
    wide = round(crop_size * factor)
    at = (np.arange(side) + (wide - side) // 2) * ((crop_size - 1) / max(wide - 1, 1))
    low = np.minimum(at.astype(np.int64), crop_size - 1)
    first = (side - crop_size) // 2
    before = np.take(values, first + low, axis)
    after = np.take(values, first + np.minimum(low + 1, crop_size - 1), axis)
    share = (at - low).reshape([side if dimension == axis else 1 for dimension in range(values.ndim)])
    result: NDArray[np.float64] = before + (after - before) * share
    return result
