"""Noise: Gaussian (as in low light), shot (a Poisson number of photons for each pixel), impulse (salt and pepper, as
from bit errors), and speckle (stronger for brighter pixels)."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import to_bytes, with_constants


@with_constants(
    (0.04, 0.06, 0.08, 0.09, 0.10),
    (0.08, 0.12, 0.18, 0.26, 0.38),
)
def gaussian_noise(images: NDArray[np.uint8], draws: Draws, sigma: float) -> NDArray[np.uint8]:
    """Add normal noise of a standard deviation (1 is white) to each channel of each pixel."""
    return to_bytes(images + draws.normal("noise", *images.shape[1:]) * (255 * sigma))


@with_constants(
    (500, 250, 100, 75, 50),
    (60, 25, 12, 5, 3),
)
def shot_noise(images: NDArray[np.uint8], draws: Draws, white: int) -> NDArray[np.uint8]:
    """Replace each channel of each pixel by a Poisson number with that mean, where white is a number of grains."""
    return to_bytes(draw_grains(images, white, draws) / white * 255)


def draw_grains(images: NDArray[np.uint8], white: int, draws: Draws) -> NDArray[np.int64]:
    """Draw Poisson numbers of means `images` / 255 * `white`, by the inverse distribution function at 32 random bits;
    the shape of `images`."""
    chance = (draws.bits("grains", *images.shape[1:]) >> np.uint64(32)).ravel()
    flat = images.ravel()
    order = np.argsort(flat, kind="stable")
    ends = np.searchsorted(flat[order], np.arange(257))
    counts = np.zeros(flat.size, np.int64)
    for value in range(256):
        places = order[ends[value] : ends[value + 1]]
        if len(places):
            counts[places] = np.searchsorted(_compute_thresholds(value, white), chance[places], side="right")
    return counts.reshape(images.shape)


@cache
def _compute_thresholds(value: int, white: int) -> NDArray[np.uint64]:
    """The Poisson distribution function of the mean value / 255 * white at 0, 1, 2 .., in units of 2^-32, up to 1."""
    mean = value / 255 * white
    chance, total, below = math.exp(-mean), 0.0, []
    for count in range(int(mean + 12 * math.sqrt(mean) + 30)):
        total += chance
        chance *= mean / (count + 1)
        below.append(round(total * 2**32))
    return np.minimum(np.array(below, np.uint64), np.uint64(2**32))


@with_constants(
    (0.01, 0.02, 0.03, 0.05, 0.07),
    (0.03, 0.06, 0.09, 0.17, 0.27),
)
def impulse_noise(images: NDArray[np.uint8], draws: Draws, share: float) -> NDArray[np.uint8]:
    """Set a fraction of all channels of all pixels to 0 or 255, with equal probability."""
    struck = draws.uniform("struck", *images.shape[1:]) <= share
    salt = draws.uniform("salt", *images.shape[1:]) <= 0.5
    return np.where(struck, np.where(salt, np.uint8(255), np.uint8(0)), images)


@with_constants(
    (0.06, 0.1, 0.12, 0.16, 0.2),
    (0.15, 0.2, 0.35, 0.45, 0.6),
)
def speckle_noise(images: NDArray[np.uint8], draws: Draws, sigma: float) -> NDArray[np.uint8]:
    """Add to each channel of each pixel a normal number of a standard deviation times its value."""
    return to_bytes(images + images * (draws.normal("noise", *images.shape[1:]) * sigma))
