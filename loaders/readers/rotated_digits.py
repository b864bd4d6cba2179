"""RotatedMNIST: each digit is rotated by the angle of its environment (Ghifary et al. 2015, arXiv 1508.07680; six
angles as in DomainBed, arXiv 2007.01434).

Rotation uses bilinear interpolation in integer arithmetic, so that the pixels are the same on every platform.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from ._idx import read_images_and_labels
from ._tensors import to_tensor_column

if TYPE_CHECKING:
    import pyarrow as pa

_BITS = 14
"""Fractional bits of sine and cosine. A position has one more, since the centre is between two pixels."""


def read(files: dict[str, Path], *, pairs: list[list[str]], angles: list[int], take: int, seed: str) -> pa.Table:
    """Columns `image` (uint8), `digit`, and the text `angle` (degrees, counter-clockwise). The images of all `pairs`
    of files are shuffled, and the first `take` of them are assigned to the angles in turn."""
    import pyarrow as pa

    images, digits, _ = read_images_and_labels(files, pairs)
    if not 0 < take <= len(images):
        raise BadDefinition(f"take = {take}, but there are {len(images)} images")
    indices = draw_permutation(f"{seed}/order", np.arange(len(images), dtype=np.uint64))[:take]
    turned = images[indices]
    for number, angle in enumerate(angles):
        turned[number :: len(angles)] = rotate_images(turned[number :: len(angles)], angle)
    names = np.array([str(angle) for angle in angles])[np.arange(take) % len(angles)]
    return pa.table({"image": to_tensor_column(turned), "digit": digits[indices], "angle": names.tolist()})


def rotate_images(images: NDArray[np.uint8], degrees: float) -> NDArray[np.uint8]:
    """Rotate square images (rows, side, side) counter-clockwise about their centre; pixels from outside are 0."""
    side = images.shape[1]
    cosine, sine = (round(2**_BITS * turn(math.radians(degrees))) for turn in (math.cos, math.sin))
    # Twice the distance from the centre, and positions in units of 2^-(bits + 1) pixels.
    down, right = np.meshgrid(*[2 * np.arange(side, dtype=np.int64) - (side - 1)] * 2, indexing="ij")
    middle, unit = (side - 1) << _BITS, 1 << (_BITS + 1)
    column = cosine * right - sine * down + middle
    row = sine * right + cosine * down + middle
    total = np.zeros(images.shape, np.int64)
    for below, across in ((0, 0), (0, 1), (1, 0), (1, 1)):
        y, x = row // unit + below, column // unit + across
        weight_y = row % unit if below else unit - row % unit
        weight_x = column % unit if across else unit - column % unit
        inside = (y >= 0) & (y < side) & (x >= 0) & (x < side)
        weight = np.where(inside, weight_y * weight_x, 0)
        total += images[:, np.clip(y, 0, side - 1), np.clip(x, 0, side - 1)] * weight
    return ((total + unit * unit // 2) // (unit * unit)).astype(np.uint8)
