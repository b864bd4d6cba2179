"""Spatter: drops of water, or of mud."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._edges import compute_distances, detect_edges
from ._filters import apply_filter, apply_gaussian_blur, pad_sides
from ._pixels import restore_channels, select_constants, to_bytes, to_three_channels

_SMALL = (
    (0.62, 0.1, 0.7, 0.7, 0.5, False),
    (0.65, 0.1, 0.8, 0.7, 0.5, False),
    (0.65, 0.3, 1, 0.69, 0.5, False),
    (0.65, 0.1, 0.7, 0.69, 0.6, True),
    (0.65, 0.1, 0.5, 0.68, 0.6, True),
)
_TINY = (
    (0.62, 0.1, 0.7, 0.7, 0.6, False),
    (0.65, 0.1, 0.8, 0.7, 0.6, False),
    (0.65, 0.3, 1, 0.69, 0.6, False),
    (0.65, 0.1, 0.7, 0.68, 0.6, True),
    (0.65, 0.1, 0.5, 0.67, 0.6, True),
)
_LARGE = (
    (0.65, 0.3, 4, 0.69, 0.6, False),
    (0.65, 0.3, 3, 0.68, 0.6, False),
    (0.65, 0.3, 2, 0.68, 0.5, False),
    (0.65, 0.3, 1, 0.65, 1.5, True),
    (0.67, 0.4, 1, 0.65, 1.5, True),
)

_WATER = np.array([175, 238, 238])
_MUD = np.array([63, 42, 20])

_RELIEF = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
"""Light from above left."""
_FARTHEST = 20
"""Drops look the same beyond this distance in pixels from their edge."""


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Blur normal numbers (mean, deviation) by a Gaussian; there is liquid where they reach a bound. Water is shaded
    like a relief, by the distance from the drop's edge; mud is opaque."""
    mean, deviation, sigma, least, last, is_mud = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    liquid = apply_gaussian_blur(mean + deviation * draws.normal("liquid", *images.shape[1:3]), sigma)
    coloured = to_three_channels(images).astype(np.float64)
    if is_mud:
        cover = apply_gaussian_blur((liquid > least).astype(np.float64), last)[..., None]
        cover[cover < 0.8] = 0
        return restore_channels(to_bytes(coloured * (1 - cover) + _MUD * cover), images)
    liquid[liquid < least] = 0
    level = (liquid * 255).astype(np.int64) & 255
    shine = (level * _compute_relief(level)).astype(np.float64)
    # Without any light the reference divides zero by zero; here the image is unchanged.
    shine *= last / np.maximum(shine.max(axis=(1, 2), keepdims=True), 1)
    return restore_channels(to_bytes(coloured + shine[..., None] * _WATER), images)


def _compute_relief(level: NDArray[np.int64]) -> NDArray[np.int64]:
    """The brightness of each pixel of the liquid, 0 to 255, (rows, height, width)."""
    distance = np.minimum(compute_distances(detect_edges(level)), _FARTHEST)
    smooth = (_sum_boxes(distance) / 9).astype(np.int64)
    even = np.stack([_equalise_histogram(plane) for plane in smooth]) if len(smooth) else smooth
    lit = np.clip(apply_filter(even.astype(np.float64), _RELIEF.astype(np.float64), "reflect"), 0, 255)
    return np.floor(_sum_boxes(lit) / 9 + 0.5).astype(np.int64)


def _sum_boxes(values: NDArray[np.float64]) -> NDArray[np.float64]:
    height, width = values.shape[1:]
    padded = pad_sides(values, 1, 1, "reflect")
    across = padded[:, :, :width] + padded[:, :, 1 : width + 1] + padded[:, :, 2:]
    return across[:, :height] + across[:, 1 : height + 1] + across[:, 2:]


def _equalise_histogram(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Equalise the histogram of an image."""
    counts = np.bincount(values.ravel(), minlength=256)
    first = int(np.flatnonzero(counts)[0])
    rest = values.size - int(counts[first])
    if not rest:
        return values
    counts[first] = 0
    scale = np.float32(255) / np.float32(rest)
    levels = np.rint(np.cumsum(counts).astype(np.float32) * scale)
    result: NDArray[np.int64] = np.minimum(levels, 255).astype(np.int64)[values]
    return result
