"""Fog: clouds by the diamond-square algorithm (Fournier, Fussell and Carpenter 1982)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import select_constants, to_bytes

_SMALL = ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))
_TINY = ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75))
_LARGE = ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4))


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Add a multiple of a map of clouds from 0 to white, and rescale the sum to the image's range."""
    amount, decay = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    height, width = images.shape[1:3]
    cloud = make_cloud_maps(max(height, width), decay, draws)[:, :height, :width, None]
    brightest = images.max(axis=(1, 2, 3), keepdims=True).astype(np.float64)
    return to_bytes((images + 255 * amount * cloud) * brightest / (brightest + 255 * amount))


def make_cloud_maps(side: int, decay: float, draws: Draws) -> NDArray[np.float64]:
    """Return maps from 0 to 1, shape (rows, n, n), where n is the least power of two that is at least `side`: each
    pixel is the mean of four neighbours plus a random number, repeated at half the distance with the randomness divided
    by `decay`."""
    wide = 1 << (side - 1).bit_length()
    maps = np.zeros((len(draws.ids), wide, wide))
    step, wild = wide, 100.0

    def filled(what: str, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        # The reference multiplies by its randomness twice.
        return sums / 4 + wild * draws.between(f"{what} {step}", -wild, wild, *sums.shape[1:])

    while step >= 2:
        half = step // 2
        corners = maps[:, ::step, ::step]
        pairs = corners + np.roll(corners, -1, axis=1)
        maps[:, half::step, half::step] = filled("squares", pairs + np.roll(pairs, -1, axis=2))
        middles, corners = maps[:, half::step, half::step], maps[:, ::step, ::step]
        above = (middles + np.roll(middles, 1, axis=1)) + (corners + np.roll(corners, -1, axis=2))
        maps[:, ::step, half::step] = filled("rows", above)
        beside = (middles + np.roll(middles, 1, axis=2)) + (corners + np.roll(corners, -1, axis=1))
        maps[:, half::step, ::step] = filled("columns", beside)
        step, wild = half, wild / decay
    maps -= maps.min(axis=(1, 2), keepdims=True)
    normalised: NDArray[np.float64] = maps / maps.max(axis=(1, 2), keepdims=True)
    return normalised
