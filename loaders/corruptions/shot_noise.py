"""Shot noise: a Poisson number of photons for each pixel."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import select_constants, to_bytes

_SMALL = (500, 250, 100, 75, 50)
_TINY = (250, 100, 50, 30, 15)
_LARGE = (60, 25, 12, 5, 3)


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Replace each channel of each pixel by a Poisson number with that mean, where white is a number of grains."""
    white = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
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
