"""Blur: defocus (each point becomes a disk), glass (each pixel comes from a random position nearby), motion (along a
random direction), zoom (as of a camera that moves towards the scene), and Gaussian."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._filters import (
    apply_filter,
    apply_gaussian_blur,
    apply_motion_blur,
    make_gaussian_weights,
    round_weights,
    zoom_in,
)
from ._pixels import to_bytes, with_constants


@with_constants(
    ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
)
def defocus_blur(images: NDArray[np.uint8], draws: Draws, radius: float, edge: float) -> NDArray[np.uint8]:
    """Average each channel over a disk whose edge is blurred by a Gaussian."""
    return to_bytes(apply_filter(images.astype(np.float64), make_disk_weights(radius, edge), "reflect"))


def make_disk_weights(radius: float, edge: float) -> NDArray[np.float64]:
    """Return the weights of a disk, shape (17, 17) or larger if needed. If the disk fills the array, blurring its edge
    adds weight (mirrored outside, as in the reference), and images get up to 3 % brighter or darker."""
    half, smooth = (8, 1) if radius <= 8 else (int(radius), 2)
    down, across = np.meshgrid(*[np.arange(-half, half + 1)] * 2, indexing="ij")
    full = ((down**2 + across**2) <= radius**2).astype(np.float64)[None]
    full /= full.sum()
    blur = make_gaussian_weights(edge, smooth)
    return round_weights(apply_filter(apply_filter(full, blur[:, None], "reflect"), blur[None, :], "reflect")[0])


@with_constants(
    ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
)
def glass_blur(images: NDArray[np.uint8], draws: Draws, sigma: float, reach: int, times: int) -> NDArray[np.uint8]:
    """Blur, then shuffle pixels within a distance several times, then blur again.

    The paper says that two pixels are swapped. In the reference both become the drawn one (its swap of two NumPy views
    overwrites the first before it is read). The published images were made in this way, so this is done here too.
    """
    height, width = images.shape[1:3]
    glass = to_bytes(apply_gaussian_blur(images.astype(np.float64), sigma))
    every, sources = np.arange(len(images)), np.tile(np.arange(height * width), (len(images), 1))
    down, across = np.arange(height - reach, reach, -1), np.arange(width - reach, reach, -1)
    targets = (down[:, None] * width + across).ravel()
    for time in range(times):
        moves = draws.below(f"moves {time}", 2 * reach, len(down), len(across), 2) - reach
        steps = (moves[..., 1] * width + moves[..., 0]).reshape(len(images), -1)
        for target, nearby in zip(targets, (targets + steps).T, strict=True):  # one pixel after another, in every image
            sources[:, target] = sources[every, nearby]
    pixels = glass.reshape(len(images), height * width, -1)
    glass = np.take_along_axis(pixels, sources[..., None], axis=1).reshape(images.shape)
    return to_bytes(apply_gaussian_blur(glass.astype(np.float64), sigma))


@with_constants(
    ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
)
def motion_blur(images: NDArray[np.uint8], draws: Draws, radius: int, sigma: float) -> NDArray[np.uint8]:
    """Blur by half a Gaussian (radius, sigma) along an angle between -45 and 45 degrees."""
    return to_bytes(apply_motion_blur(images, radius, sigma, draws.between("angle", -45, 45)))


@with_constants(
    ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
)
def zoom_blur(images: NDArray[np.uint8], draws: Draws, bound: float, step: float) -> NDArray[np.uint8]:
    """Average the image and its enlargements by 1, 1 + step .. up to a bound."""
    total = images.astype(np.float64)
    factors = list_enlargements(bound, step)
    for factor in factors:
        total += zoom_in(images.astype(np.float64), factor)
    return to_bytes(total / (len(factors) + 1))


def list_enlargements(bound: float, step: float) -> list[float]:
    """Return 1, 1 + step .. below the bound, as `numpy.arange`, which due to rounding reaches some of the bounds."""
    exact_step = (1 + step) - 1
    return [1 + number * exact_step for number in range(math.ceil((bound - 1) / step))]


@with_constants(
    (0.4, 0.6, 0.7, 0.8, 1.0),
    (1.0, 2.0, 3.0, 4.0, 6.0),
)
def gaussian_blur(images: NDArray[np.uint8], draws: Draws, sigma: float) -> NDArray[np.uint8]:
    """Blur each channel by a Gaussian with a width in pixels."""
    return to_bytes(apply_gaussian_blur(images.astype(np.float64), sigma))
