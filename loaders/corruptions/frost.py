"""Frost: photographs of ice, added to the image.

The photographs are those of the reference and are not part of the package: they are fetched by sha256 from a folder of
`FARSHIFT_MIRRORS`, or from the repository that publishes them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, MissingExtra
from ...splits.manifest import FilePin
from ..acquire.fetch import fetch_file
from ._draws import Draws
from ._pixels import find_constant_set, restore_channels, select_constants, to_bytes, to_three_channels

_SMALL = ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))
_TINY = ((1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55))
_LARGE = ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))

_FOLDER = "https://raw.githubusercontent.com/hendrycks/robustness/8190fe329f5f072a06e3a2aea02bb5dda69aed9f/ImageNet-C/create_c"
_PHOTOGRAPHS = (
    ("frost1.png", 1_199_930, "ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755"),
    ("frost2.png", 299_002, "fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137"),
    ("frost3.png", 299_002, "2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504"),
    ("frost4.jpg", 36_734, "3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e"),
    ("frost5.jpg", 155_150, "5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2"),
)
"""The five photographs that are used; a sixth is published, but the reference never draws it."""


def corrupt(images: NDArray[np.uint8], severity: int, draws: Draws, constants: str = "") -> NDArray[np.uint8]:
    """Add a fraction of the image and a fraction of a random crop of a random photograph. For smaller images the
    photograph is reduced: to every fifth pixel, or to three tenths of its sides."""
    image_share, frost_share = select_constants(images, severity, constants, _SMALL, _TINY, _LARGE)
    height, width = images.shape[1:3]
    ice = [_scale_photograph(number, constants or find_constant_set(images)) for number in range(5)]
    if any(photograph.shape[0] <= height or photograph.shape[1] <= width for photograph in ice):
        raise BadData(f"images of {height}x{width} pixels are larger than the photographs of frost")
    which = draws.below("photograph", len(ice))
    along = draws.uniform("place", 2)
    blend = to_three_channels(images).astype(np.float64) * image_share
    for row, number in enumerate(which.tolist()):
        photograph = ice[number]
        top, left = (
            int(along[row, axis] * (photograph.shape[axis] - size)) for axis, size in enumerate((height, width))
        )
        blend[row] += frost_share * photograph[top : top + height, left : left + width]
    return restore_channels(to_bytes(blend), images)


def _scale_photograph(number: int, constants: str) -> NDArray[np.uint8]:
    """A photograph at the size for a set of constants."""
    photograph = _load_photograph(number)
    if constants == "cifar":
        return photograph[2::5, 2::5]
    return photograph if constants == "imagenet" else _shrink_photograph(photograph, 3, 10)


def _shrink_photograph(photograph: NDArray[np.uint8], times: int, of: int) -> NDArray[np.uint8]:
    """Resize by `times` / `of`, as OpenCV's bilinear `resize`: each pixel is interpolated between the four nearest
    ones, with weights in units of 2^-11 and sums in 2^-22."""
    height, width = (int(np.rint(side * times / of)) for side in photograph.shape[:2])
    down, across = (
        _compute_interpolation(height, photograph.shape[0], times, of),
        _compute_interpolation(width, photograph.shape[1], times, of),
    )
    values = photograph.astype(np.int64)
    (left, left_weight), (right, right_weight) = across
    lines = values[:, left] * left_weight[:, None] + values[:, right] * right_weight[:, None]
    # OpenCV's intermediate truncation: four bits of a line, and sixteen of each product.
    total = np.zeros((height, width, values.shape[2]), np.int64)
    for index, weight in down:
        total += ((lines[index] >> 4) * weight[:, None, None]) >> 16
    result: NDArray[np.uint8] = np.clip((total + 2) >> 2, 0, 255).astype(np.uint8)
    return result


def _compute_interpolation(
    after: int, before: int, times: int, of: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For each of `after` pixels, the two neighbouring pixels of `before`, each with its weight."""
    middle = (np.arange(after) + 0.5) * of / times - 0.5
    first = np.floor(middle).astype(np.int64)
    second = np.rint((middle - first) * 2048).astype(np.int64)
    inside = [np.clip(first + step, 0, before - 1) for step in (0, 1)]
    return [(inside[0], 2048 - second), (inside[1], second)]


@cache
def _load_photograph(number: int) -> NDArray[np.uint8]:
    """A photograph, shape (height, width, 3)."""
    name, size, sha256 = _PHOTOGRAPHS[number]
    mirror = {"sort": "https", "url": f"{_FOLDER}/{name}"}
    path = fetch_file(FilePin.model_validate({"name": name, "bytes": size, "sha256": sha256, "mirrors": [mirror]}))
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtra("frost", "train") from error
    with Image.open(path) as photograph:
        return np.asarray(photograph.convert("RGB"))
