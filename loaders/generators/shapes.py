"""Images of one coloured shape on a noisy background: every combination of shape, colour, size and place.

They are rendered in the style of the factor data sets on which combinations are held out (Schott et al. 2022, "Visual
Representation Learning Does Not Generalize Strongly Within the Same Domain", arXiv 2107.08221), with integer arithmetic
only, so that the pixels are the same on every platform.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_below, draw_bits
from ..readers._arrow_types import to_tensor_column
from ._rows import make_counters, select_words

Ints = NDArray[np.int64]

SHAPES = ("cross", "disc", "ring", "square", "triangle")
COLOURS = {
    "blue": (60, 90, 230),
    "green": (50, 190, 70),
    "purple": (170, 60, 200),
    "red": (225, 50, 50),
    "yellow": (220, 205, 50),
}
SIZES = {"large": 6, "medium": 5, "small": 4}
"""Half the side of a shape, in pixels."""
PLACES = ("bottom-left", "bottom-right", "centre", "top-left", "top-right")

_SIDE = 24
_CENTRES = {
    "bottom-left": (16, 7),
    "bottom-right": (16, 16),
    "centre": (12, 12),
    "top-left": (7, 7),
    "top-right": (7, 16),
}
_JITTER = 3
_NOISE = 32


def rows(*, seed: str, per_combination: int) -> pa.Table:
    """`per_combination` images of each of the 375 combinations; they differ by noise and by a shift of at most one
    pixel. Columns: `picture` (uint8[24,24,3]), the factors `shape`, `colour`, `size`, `place` (text), and
    `shape_class`, `colour_class`, `size_class` (their ranks in alphabetical order)."""
    levels = (len(SHAPES), len(COLOURS), len(SIZES), len(PLACES))
    shape, colour, size, position = np.repeat(np.indices(levels).reshape(4, -1), per_combination, axis=1)
    number = make_counters(len(shape))
    jitter = np.stack([draw_below(f"{seed}/{axis}", number, _JITTER) - 1 for axis in ("row", "column")], axis=1)
    centre = np.array(list(_CENTRES.values()))[position] + jitter
    inside = make_shape_mask(shape, np.array(list(SIZES.values()))[size], centre)
    noise = draw_bits(f"{seed}/noise", make_counters(len(shape) * _SIDE * _SIDE * 3 // 8))
    pixels = noise.astype("<u8").view(np.uint8).reshape(-1, _SIDE, _SIDE, 3) % _NOISE
    paint = np.array(list(COLOURS.values()), np.uint8)[colour]
    pixels = np.where(inside[..., None], paint[:, None, None, :] - _NOISE // 2 + pixels, pixels).astype(np.uint8)
    return pa.table(
        {
            "picture": to_tensor_column(pixels),
            "shape": select_words(SHAPES, shape),
            "colour": select_words(list(COLOURS), colour),
            "size": select_words(list(SIZES), size),
            "place": select_words(PLACES, position),
            "shape_class": shape,
            "colour_class": colour,
            "size_class": size,
        }
    )


def make_shape_mask(shape: Ints, radius: Ints, centre: Ints) -> NDArray[np.bool_]:
    """Return a mask of the pixels of each shape, (n, 24, 24): `shape` indexes `SHAPES`, `radius` in pixels, `centre`
    (n, 2)."""
    y = np.arange(_SIDE)[None, :, None] - centre[:, 0, None, None]
    x = np.arange(_SIDE)[None, None, :] - centre[:, 1, None, None]
    r = radius[:, None, None]
    box = (np.abs(y) <= r) & (np.abs(x) <= r)
    square_distance = y * y + x * x
    disc = square_distance <= r * r
    masks = np.stack(
        [
            box & ((np.abs(y) <= r // 3) | (np.abs(x) <= r // 3)),
            disc,
            disc & (4 * square_distance >= r * r),
            box & (np.abs(y) <= r - 1) & (np.abs(x) <= r - 1),
            box & (2 * np.abs(x) <= y + r),
        ]
    )
    chosen: NDArray[np.bool_] = masks[shape, np.arange(len(shape))]
    return chosen
