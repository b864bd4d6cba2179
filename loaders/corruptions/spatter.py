"""Spatter: drops of water, or of mud."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._edges import distances, edges
from ._filters import filtered, gaussian, padded_by
from ._pixels import as_before, chosen, three, to_bytes

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
"""Drops look the same farther than so many pixels from their edge."""


def corrupt(pictures: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Normal numbers (mean, deviation) are blurred by a Gaussian; where they reach a bound there is liquid. Water is
    lit like a relief, by its distance from the drop's edge; mud covers."""
    mean, deviation, sigma, least, last, is_mud = chosen(pictures, severity, constants, _SMALL, _TINY, _LARGE)
    liquid = gaussian(mean + deviation * draws.normal("liquid", *pictures.shape[1:3]), sigma)
    coloured = three(pictures).astype(np.float64)
    if is_mud:
        cover = gaussian((liquid > least).astype(np.float64), last)[..., None]
        cover[cover < 0.8] = 0
        return as_before(to_bytes(coloured * (1 - cover) + _MUD * cover), pictures)
    liquid[liquid < least] = 0
    level = (liquid * 255).astype(np.int64) & 255
    shine = (level * _relief(level)).astype(np.float64)
    # Where nothing shines the reference divides zero by zero; here such a picture stays as it is.
    shine *= last / np.maximum(shine.max(axis=(1, 2), keepdims=True), 1)
    return as_before(to_bytes(coloured + shine[..., None] * _WATER), pictures)


def _relief(level: NDArray[np.int64]) -> NDArray[np.int64]:
    """How light each pixel of the liquid is, 0 to 255, (rows, height, width)."""
    apart = np.minimum(distances(edges(level)), _FARTHEST)
    smooth = (_box_sums(apart) / 9).astype(np.int64)
    even = np.stack([_equalised(one) for one in smooth]) if len(smooth) else smooth
    lit = np.clip(filtered(even.astype(np.float64), _RELIEF.astype(np.float64), "reflect"), 0, 255)
    return np.floor(_box_sums(lit) / 9 + 0.5).astype(np.int64)


def _box_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    height, width = values.shape[1:]
    padded = padded_by(values, 1, 1, "reflect")
    across = padded[:, :, :width] + padded[:, :, 1 : width + 1] + padded[:, :, 2:]
    return across[:, :height] + across[:, 1 : height + 1] + across[:, 2:]


def _equalised(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """One picture with its histogram equalised."""
    counts = np.bincount(values.ravel(), minlength=256)
    first = int(np.flatnonzero(counts)[0])
    rest = values.size - int(counts[first])
    if not rest:
        return values
    counts[first] = 0
    scale = np.float32(255) / np.float32(rest)
    levels = np.rint(np.cumsum(counts).astype(np.float32) * scale)
    made: NDArray[np.int64] = np.minimum(levels, 255).astype(np.int64)[values]
    return made
