"""Glass blur, as through frosted glass: each pixel comes from a random position nearby."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._filters import apply_gaussian_blur
from ._pixels import select_constants, to_bytes

_SMALL = ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2))
_TINY = ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2))
_FEW = 12
_LARGE = ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2))


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Blur, then shuffle pixels within a distance several times, then blur again.

    The paper says that two pixels are swapped. In the reference both become the drawn one (its swap of two NumPy views
    overwrites the first before it is read). The published images were made in this way, so this is done here too.
    """
    sigma, reach, times = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    height, width = images.shape[1:3]
    glass = to_bytes(apply_gaussian_blur(images.astype(np.float64), sigma))
    sources = np.tile(np.arange(height * width), (len(images), 1))
    down, across = np.arange(height - reach, reach, -1), np.arange(width - reach, reach, -1)
    targets = (down[:, None] * width + across).ravel()
    for time in range(times):
        moves = draws.below(f"moves {time}", 2 * reach, len(down), len(across), 2) - reach
        steps = (moves[..., 1] * width + moves[..., 0]).reshape(len(images), -1)
        _shuffle(sources, targets, targets + steps)
    pixels = glass.reshape(len(images), height * width, -1)
    glass = np.take_along_axis(pixels, sources[..., None], axis=1).reshape(images.shape)
    return to_bytes(apply_gaussian_blur(glass.astype(np.float64), sigma))


def _shuffle(sources: NDArray[np.int64], targets: NDArray[np.int64], nearby: NDArray[np.int64]) -> None:
    """One pixel after another becomes one nearby, in every image: of few images one after another, where lists are
    faster than arrays."""
    if len(sources) < _FEW:
        for image in range(len(sources)):
            pixels = sources[image].tolist()
            for target, source in zip(targets.tolist(), nearby[image].tolist(), strict=True):
                pixels[target] = pixels[source]
            sources[image] = pixels
    else:
        rows = np.arange(len(sources))
        for step, target in enumerate(targets.tolist()):
            sources[:, target] = sources[rows, nearby[:, step]]
