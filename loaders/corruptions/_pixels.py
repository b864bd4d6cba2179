"""What corruptions share: constants by the size of pictures, grey and colour, and the way back to bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

SETS = ("cifar", "tiny-imagenet", "imagenet")
"""Whose constants there are: CIFAR-10-C's (for 32 pixels), Tiny ImageNet-C's (64) and ImageNet-C's (224)."""

SMALL = 64
"""Pictures whose longer side has at most so many pixels get the constants of CIFAR-10-C, larger ones those of
ImageNet-C, where nobody says otherwise."""

_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114
"""The weights of ITU-R BT.601."""


def find_constant_set(images: NDArray[np.uint8]) -> str:
    """The set of constants for pictures of this size."""
    return "cifar" if max(int(side) for side in images.shape[1:3]) <= SMALL else "imagenet"


def select_constants(
    images: NDArray[np.uint8],
    severity: int,
    constants: str,
    small: Sequence[T],
    tiny: Sequence[T],
    large: Sequence[T],
) -> T:
    """The constants of a severity (1 to 5) in the set called so, or without a name in that for pictures of this
    size."""
    return dict(zip(SETS, (small, tiny, large), strict=True))[constants or find_constant_set(images)][severity - 1]


def to_bytes(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Values limited to 0..255, fractions cut off, as the reference does."""
    limited: NDArray[np.uint8] = np.clip(values, 0, 255).astype(np.uint8)
    return limited


def to_luminance(values: NDArray[np.uint8] | NDArray[np.float64]) -> NDArray[np.float64]:
    """The luminance of pictures (rows, height, width, 3), shape (rows, height, width, 1); grey ones as they are."""
    if values.shape[-1] == 1:
        return values.astype(np.float64)
    red, green, blue = (values[..., channel].astype(np.float64) for channel in range(3))
    return ((red * _RED + green * _GREEN) + blue * _BLUE)[..., None]


def to_three_channels(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Grey pictures with their one channel three times, coloured ones as they are."""
    return np.repeat(values, 3, axis=-1) if values.shape[-1] == 1 else values


def restore_channels(coloured: NDArray[np.uint8], images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """`coloured` with as many channels as `images`: grey ones get the luminance, to the nearest whole number."""
    return coloured if images.shape[-1] == 3 else np.floor(to_luminance(coloured) + 0.5).astype(np.uint8)
