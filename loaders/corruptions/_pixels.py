"""Shared code of corruptions: constants by image size, grey and colour, and conversion to bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws

Corruption = Callable[..., NDArray[np.uint8]]

SMALL = 64
"""Images whose longer side has at most this many pixels use the constants of CIFAR-10-C, larger ones those of
ImageNet-C."""

_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114
"""The weights of ITU-R BT.601."""


def with_constants(
    small: Iterable[Any], large: Iterable[Any]
) -> Callable[[Callable[..., NDArray[np.uint8]]], Corruption]:
    """Make a corruption of a function of images, draws and the constants of a severity, which are listed by severity
    for small images and for large ones."""
    tables = [*small], [*large]

    def bind(apply: Callable[..., NDArray[np.uint8]]) -> Corruption:
        def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws) -> NDArray[np.uint8]:
            level = tables[max(images.shape[1:3]) > SMALL][severity - 1]
            return apply(images, draws, *(level if isinstance(level, list | tuple) else [level]))

        return corrupt

    return bind


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
