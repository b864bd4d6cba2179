"""Defocus blur: each point becomes a disk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._filters import apply_filter, make_gaussian_weights, round_weights
from ._pixels import select_constants, to_bytes

_SMALL = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))
_TINY = ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1))
_LARGE = ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Average each channel over a disk whose edge is blurred by a Gaussian."""
    radius, edge = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    return to_bytes(apply_filter(images.astype(np.float64), make_disk_weights(radius, edge), "reflect"))


def make_disk_weights(radius: float, edge: float) -> NDArray[np.float64]:
    """Return the weights of a disk, shape (17, 17) or larger if needed. If the disk fills the array, blurring its edge
    adds weight (mirrored outside, as in the reference), and images get up to 3 % brighter or darker."""
    half, smooth = (8, 1) if radius <= 8 else (int(radius), 2)
    down, across = np.meshgrid(*[np.arange(-half, half + 1)] * 2, indexing="ij")
    full = ((down**2 + across**2) <= radius**2).astype(np.float64)[None]
    full /= full.sum()
    blur = make_gaussian_weights(edge, smooth)
    return round_weights(apply_filter(apply_filter(full, blur[:, None], "reflect"), blur[None, :], "reflect")[0])
