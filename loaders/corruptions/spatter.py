"""Spatter: drops of water, or of mud."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from ._draws import Draws
from ._filters import apply_filter, apply_gaussian_blur
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

_LOW, _HIGH = 50, 150
_TANGENT = 13573
"""tan 22.5 degrees in units of 2^-15."""

_STRAIGHT, _DIAGONAL, _KNIGHT = (round(length * 65536) for length in (1, 1.4, 2.1969))
"""The lengths of steps (Borgefors 1986), in units of 2^-16 pixels."""


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
    sums: NDArray[np.float64] = ndimage.convolve(values, np.ones((1, 3, 3)), mode="mirror")
    return sums


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


def detect_edges(images: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each pixel of images (rows, height, width) of 0..255 is on an edge (Canny 1986): the sum of the
    absolute Sobel gradients is a local maximum along the gradient, and over 150, or over 50 and connected to such a
    pixel."""
    sobel = np.outer([1, 2, 1], [-1, 0, 1])
    right, down = (ndimage.correlate(images, kernel[None], mode="nearest") for kernel in (sobel, sobel.T))
    size = np.abs(right) + np.abs(down)
    across, along = np.abs(right) * _TANGENT, np.abs(down) << 15
    steep = across + (np.abs(right) << 16)
    turn = (right ^ down) < 0
    near = np.pad(size, [(0, 0), (1, 1), (1, 1)])

    def beside(y: int, x: int) -> NDArray[np.int64]:
        height, width = size.shape[1:]
        neighbour: NDArray[np.int64] = near[:, 1 + y : 1 + y + height, 1 + x : 1 + x + width]
        return neighbour

    flat = (size > beside(0, -1)) & (size >= beside(0, 1))
    upright = (size > beside(-1, 0)) & (size >= beside(1, 0))
    falling = (size > beside(-1, -1)) & (size > beside(1, 1))
    rising = (size > beside(-1, 1)) & (size > beside(1, -1))
    peak = np.where(along < across, flat, np.where(along > steep, upright, np.where(turn, rising, falling)))
    weak = peak & (size > _LOW)
    connected: NDArray[np.bool_] = ndimage.binary_propagation(
        weak & (size > _HIGH), structure=np.ones((1, 3, 3)), mask=weak
    )
    return connected


def compute_distances(marked: NDArray[np.bool_], farthest: int = 32) -> NDArray[np.float64]:
    """Return the length of the shortest path from each pixel to a marked one, in steps to the eight neighbours and
    knight's moves, up to `farthest` pixels; shape (rows, height, width)."""
    height, width = marked.shape[1:]
    far = farthest * _STRAIGHT
    distance = np.where(marked, 0, far)
    steps = [(y, x) for y in (-2, -1, 0, 1, 2) for x in (-2, -1, 0, 1, 2) if abs(y) == 1 or abs(x) == 1]
    lengths = {1: _STRAIGHT, 2: _DIAGONAL, 5: _KNIGHT}
    while True:
        padded = np.pad(distance, [(0, 0), (2, 2), (2, 2)], constant_values=far)
        nearer = distance
        for y, x in steps:
            way = padded[:, 2 + y : 2 + y + height, 2 + x : 2 + x + width] + lengths[y * y + x * x]
            nearer = np.minimum(nearer, way)
        if (nearer == distance).all():
            return distance / _STRAIGHT
        distance = nearer
