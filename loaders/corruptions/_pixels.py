"""Shared code of corruptions: constants by image size, grey and colour, and conversion to bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

SETS = ("cifar", "tiny-imagenet", "imagenet")
"""The sets of constants: CIFAR-10-C's (for 32 pixels), Tiny ImageNet-C's (64) and ImageNet-C's (224)."""

SMALL = 64
"""Images whose longer side has at most this many pixels use the constants of CIFAR-10-C by default, larger ones those
of ImageNet-C."""

_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114
"""The weights of ITU-R BT.601."""


def find_constant_set(images: NDArray[np.uint8]) -> str:
    """Return the default set of constants for images of this size."""
    return "cifar" if max(int(side) for side in images.shape[1:3]) <= SMALL else "imagenet"


def select_constants(
    images: NDArray[np.uint8],
    severity: int,
    constants: str,
    small: Sequence[T],
    tiny: Sequence[T],
    large: Sequence[T],
) -> T:
    """Return the constants of a severity (1 to 5) in the named set, or by default in the set for images of this
    size."""
    return dict(zip(SETS, (small, tiny, large), strict=True))[constants or find_constant_set(images)][severity - 1]


def to_bytes(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Clip values to 0..255 and truncate to integers, as the reference does."""
    limited: NDArray[np.uint8] = np.clip(values, 0, 255).astype(np.uint8)
    return limited


def to_luminance(values: NDArray[np.uint8] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the luminance of images (rows, height, width, 3), shape (rows, height, width, 1); grey ones are
    unchanged."""
    if values.shape[-1] == 1:
        return values.astype(np.float64)
    red, green, blue = (values[..., channel].astype(np.float64) for channel in range(3))
    return ((red * _RED + green * _GREEN) + blue * _BLUE)[..., None]


def to_three_channels(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Repeat the channel of grey images three times; colour images are unchanged."""
    return np.repeat(values, 3, axis=-1) if values.shape[-1] == 1 else values


def restore_channels(coloured: NDArray[np.uint8], images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Convert `coloured` to the number of channels of `images`: grey ones get the luminance, rounded to an integer."""
    return coloured if images.shape[-1] == 3 else np.floor(to_luminance(coloured) + 0.5).astype(np.uint8)
