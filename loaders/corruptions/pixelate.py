"""Pixelation: reduced and enlarged again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import select_constants

_SMALL = (0.95, 0.9, 0.85, 0.75, 0.65)
_TINY = (0.9, 0.8, 0.7, 0.6, 0.5)
_LARGE = (0.6, 0.5, 0.4, 0.3, 0.25)

_BITS = 22


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Reduce the sides to a fraction, with each pixel the mean of those it covers, and enlarge them again."""
    share = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    height, width = images.shape[1:3]
    fewer = _resize_axis(_resize_axis(images, 2, int(width * share)), 1, int(height * share))
    return _resize_axis(_resize_axis(fewer, 2, width), 1, height)


def _resize_axis(images: NDArray[np.uint8], axis: int, side: int) -> NDArray[np.uint8]:
    """Resize images to a number of pixels along an axis: the mean of the pixels whose centres fall into a new pixel, in
    multiples of 2^-22, as in Pillow's box filter."""
    values = np.moveaxis(images, axis, 0).astype(np.int64)
    result = np.empty((side, *values.shape[1:]), np.int64)
    for index, (first, last) in enumerate(_iterate_boxes(len(values), side)):
        weight = int(0.5 + (1 << _BITS) / (last - first))
        result[index] = (values[first:last].sum(axis=0) * weight + (1 << (_BITS - 1))) >> _BITS
    return np.moveaxis(np.minimum(result, 255).astype(np.uint8), 0, axis)


def _iterate_boxes(before: int, after: int) -> Iterator[tuple[int, int]]:
    """For each of `after` pixels, the range [first, last) of `before` pixels whose centres are in it."""
    scale = before / after
    half = 0.5 * max(scale, 1)
    for index in range(after):
        middle = (index + 0.5) * scale
        first, last = max(int(middle - half + 0.5), 0), min(int(middle + half + 0.5), before)
        inside = [at for at in range(first, last) if -0.5 < (at - middle + 0.5) / max(scale, 1) <= 0.5]
        yield inside[0], inside[-1] + 1
