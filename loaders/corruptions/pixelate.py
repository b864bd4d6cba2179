"""Pixelation: made smaller, and larger again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import chosen

_SMALL = (0.95, 0.9, 0.85, 0.75, 0.65)
_TINY = (0.9, 0.8, 0.7, 0.6, 0.5)
_LARGE = (0.6, 0.5, 0.4, 0.3, 0.25)

_BITS = 22


def corrupt(pictures: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Sides are shortened to this share, each pixel the mean of those that fall to it, and stretched again."""
    share = chosen(pictures, severity, constants, _SMALL, _TINY, _LARGE)
    height, width = pictures.shape[1:3]
    fewer = _resized(_resized(pictures, 2, int(width * share)), 1, int(height * share))
    return _resized(_resized(fewer, 2, width), 1, height)


def _resized(pictures: NDArray[np.uint8], axis: int, side: int) -> NDArray[np.uint8]:
    """Pictures with so many pixels along an axis: the mean of those whose middle falls to a pixel, in whole numbers of
    2^-22, as Pillow's box filter is defined."""
    values = np.moveaxis(pictures, axis, 0).astype(np.int64)
    made = np.empty((side, *values.shape[1:]), np.int64)
    for place, (first, last) in enumerate(_boxes(len(values), side)):
        weight = int(0.5 + (1 << _BITS) / (last - first))
        made[place] = (values[first:last].sum(axis=0) * weight + (1 << (_BITS - 1))) >> _BITS
    return np.moveaxis(np.minimum(made, 255).astype(np.uint8), 0, axis)


def _boxes(before: int, after: int) -> Iterator[tuple[int, int]]:
    """For each of `after` pixels the first and, excluded, the last of `before` pixels whose middles lie in it."""
    scale = before / after
    half = 0.5 * max(scale, 1)
    for place in range(after):
        middle = (place + 0.5) * scale
        first, last = max(int(middle - half + 0.5), 0), min(int(middle + half + 0.5), before)
        inside = [at for at in range(first, last) if -0.5 < (at - middle + 0.5) / max(scale, 1) <= 0.5]
        yield inside[0], inside[-1] + 1
