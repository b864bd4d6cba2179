"""Edges of images (Canny 1986), and the distance of each pixel from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LOW, _HIGH = 50, 150
_TANGENT = 13573
"""tan 22.5 degrees in units of 2^-15."""

_STRAIGHT, _DIAGONAL, _KNIGHT = (round(length * 65536) for length in (1, 1.4, 2.1969))
"""The lengths of steps (Borgefors 1986), in units of 2^-16 pixels."""


def detect_edges(images: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each pixel of images (rows, height, width) of 0..255 is on an edge: the sum of the absolute Sobel
    gradients is a local maximum along the gradient, and over 150, or over 50 and connected to such a pixel."""
    right, down = _compute_sobel(images)
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
    mask = weak & (size > _HIGH)
    while True:
        grown = _dilate_mask(mask) & weak
        if (grown == mask).all():
            return mask
        mask = grown


def _compute_sobel(images: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    padded = np.pad(images, [(0, 0), (1, 1), (1, 1)], mode="edge")
    tall = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    wide = padded[:, :, :-2] + 2 * padded[:, :, 1:-1] + padded[:, :, 2:]
    return tall[:, :, 2:] - tall[:, :, :-2], wide[:, 2:] - wide[:, :-2]


def _dilate_mask(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    padded = np.pad(mask, [(0, 0), (1, 1), (1, 1)])
    tall = padded[:, :-2] | padded[:, 1:-1] | padded[:, 2:]
    dilated: NDArray[np.bool_] = tall[:, :, :-2] | tall[:, :, 1:-1] | tall[:, :, 2:]
    return dilated


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
