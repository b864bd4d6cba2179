"""JPEG compression (ITU-T T.81) in integer arithmetic, as in libjpeg.

The pixels are those of Pillow for `quality` and its defaults with libjpeg-turbo: colour at half the resolution, the
tables of Annex K, the accurate integer transform of Loeffler, Ligtenberg and Moshovitz (1989), and smooth upsampling.
The subsequent lossless compression is omitted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._pixels import select_constants

_SMALL = (80, 65, 58, 50, 40)
_TINY = (65, 58, 50, 40, 25)
_LARGE = (25, 18, 15, 10, 7)

_BRIGHTNESS = """16 11 10 16 24 40 51 61  12 12 14 19 26 58 60 55  14 13 16 24 40 57 69 56  14 17 22 29 51 87 80 62
18 22 37 56 68 109 103 77  24 35 55 64 81 104 113 92  49 64 78 87 103 121 120 101  72 92 95 98 112 100 103 99"""
_COLOUR = f"17 18 24 47 {'99 ' * 4} 18 21 26 66 {'99 ' * 4} 24 26 56 {'99 ' * 5} 47 66 {'99 ' * 38}"

_BITS = 13
"""Fractional bits of the transform's constants."""
_PASS_BITS = 2
"""Fractional bits between its two passes."""

_TRANSFORM = np.array(
    [
        [8192, 8192, 8192, 8192, 8192, 8192, 8192, 8192],
        [11363, 9633, 6437, 2260, -2260, -6437, -9633, -11363],
        [10703, 4433, -4433, -10703, -10703, -4433, 4433, 10703],
        [9633, -2259, -11362, -6436, 6436, 11362, 2259, -9633],
        [8192, -8192, -8192, 8192, 8192, -8192, -8192, 8192],
        [6437, -11362, 2261, 9633, -9633, -2261, 11362, -6437],
        [4433, -10704, 10704, -4433, -4433, 10704, -10704, 4433],
        [2260, -6436, 9633, -11363, 11363, -9633, 6436, -2260],
    ],
    np.int64,
)
"""The cosine transform times sqrt(8), in units of 2^-13; shape (8 frequencies, 8 positions). The algorithm adds
products with rounded constants, so some entries differ by 1 from the nearest integer."""


_COMPONENTS = np.array([(19595, 38470, 7471), (-11059, -21709, 32768), (32768, -27439, -5329)])
"""Luminance, and the differences of blue and red from it, as sums of red, green and blue; in units of 2^-16."""
_HALF = 1 << 15
_OFFSETS = np.array([_HALF, (128 << 16) + _HALF - 1, (128 << 16) + _HALF - 1])


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Compress with a quality and decompress; grey images as grey JPEG."""
    quality = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    light, colour = (_make_quantisation_table(published, quality) for published in (_BRIGHTNESS, _COLOUR))
    values = images.astype(np.int64)
    if images.shape[-1] == 1:
        return _compress_plane(values[..., 0], light, 1)[..., None].astype(np.uint8)
    height, width = images.shape[1:3]
    planes = (values @ _COMPONENTS.T + _OFFSETS) >> 16
    brightness = _compress_plane(planes[..., 0], light, 2)
    halves = [_compress_plane(_halve_plane(planes[..., component]), colour, 1) for component in (1, 2)]
    blueness, redness = (_double_plane(half[:, :, : (width + 1) // 2])[:, :height, :width] - 128 for half in halves)
    red = brightness + ((91881 * redness + _HALF) >> 16)
    green = brightness + ((-22554 * blueness - 46802 * redness + _HALF) >> 16)
    blue = brightness + ((116130 * blueness + _HALF) >> 16)
    pixels: NDArray[np.uint8] = np.clip(np.stack([red, green, blue], axis=-1), 0, 255).astype(np.uint8)
    return pixels


def _make_quantisation_table(published: str, quality: int) -> NDArray[np.int64]:
    """The quantisation steps at a quality of 1 to 100, shape (8, 8)."""
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    steps = np.array([int(step) for step in published.split()], np.int64).reshape(8, 8)
    return np.clip((steps * percent + 50) // 100, 1, 255)


def _halve_plane(plane: NDArray[np.int64]) -> NDArray[np.int64]:
    """Means of two by two pixels, alternately rounded down and up, padded to whole blocks."""
    plane = _extend_plane(plane, 2, 16)
    total = plane[:, ::2, ::2] + plane[:, ::2, 1::2] + plane[:, 1::2, ::2] + plane[:, 1::2, 1::2]
    return (total + 1 + np.arange(total.shape[2]) % 2) >> 2


def _double_plane(plane: NDArray[np.int64]) -> NDArray[np.int64]:
    """Double height and width; each pixel is 9/16 of its nearest, 3/16 of the next two and 1/16 of the fourth."""
    rows, height, width = plane.shape
    above, below = plane[:, [0, *range(height - 1)]], plane[:, [*range(1, height), height - 1]]
    tall = np.stack([3 * plane + above, 3 * plane + below], axis=2).reshape(rows, 2 * height, width)
    left, right = tall[:, :, [0, *range(width - 1)]], tall[:, :, [*range(1, width), width - 1]]
    wide = np.stack([(3 * tall + left + 8) >> 4, (3 * tall + right + 7) >> 4], axis=3)
    return wide.reshape(rows, 2 * height, 2 * width)


def _extend_plane(plane: NDArray[np.int64], down: int, across: int) -> NDArray[np.int64]:
    """Repeat the last row and column, up to a multiple of a size."""
    height, width = plane.shape[1:]
    return np.pad(plane, [(0, 0), (0, -height % down), (0, -width % across)], mode="edge")


def _compress_plane(plane: NDArray[np.int64], table: NDArray[np.int64], factor: int) -> NDArray[np.int64]:
    """A component (rows, height, width) after transform, quantisation and their inverse, 0 to 255. `factor`: its blocks
    are in groups of `factor` by `factor`."""
    rows, height, width = plane.shape
    padded = _extend_plane(plane, 8 * factor, 8 * factor)
    down, across = padded.shape[1] // 8, padded.shape[2] // 8
    blocks = padded.reshape(rows, down, 8, across, 8).swapaxes(2, 3) - 128
    # Rows, then columns; every sum is rounded once.
    passed = _round_bits(blocks @ _TRANSFORM.T, _BITS - _PASS_BITS)
    coefficients = _round_bits(_TRANSFORM @ passed, _BITS + _PASS_BITS)
    steps = table * 8
    levels = np.sign(coefficients) * ((np.abs(coefficients) + steps // 2) // steps)
    passed = _round_bits(_TRANSFORM.T @ (levels * table), _BITS - _PASS_BITS)
    pixels = _round_bits(passed @ _TRANSFORM, _BITS + _PASS_BITS + 3)
    plane = (pixels + 128).swapaxes(2, 3).reshape(rows, 8 * down, 8 * across)[:, :height, :width]
    return np.clip(plane, 0, 255)


def _round_bits(values: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    return (values + (1 << (bits - 1))) >> bits
