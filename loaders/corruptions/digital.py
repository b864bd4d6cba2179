"""Contrast, elastic transform (Simard, Steinkraus and Platt 2003: a global affine map, then local displacements),
pixelation, JPEG compression, and saturation."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..decoders.pillow import import_pillow
from ._draws import Draws
from ._filters import apply_gaussian_blur
from ._pixels import restore_channels, to_bytes, to_three_channels, with_constants

if TYPE_CHECKING:
    from PIL.Image import Image


@with_constants(
    (0.75, 0.5, 0.4, 0.3, 0.15),
    (0.4, 0.3, 0.2, 0.1, 0.05),
)
def contrast(images: NDArray[np.uint8], draws: Draws, share: float) -> NDArray[np.uint8]:
    """Scale the difference of each channel from its mean over the image by a factor."""
    height, width = images.shape[1:3]
    mean = images.sum(axis=(1, 2), keepdims=True, dtype=np.int64) / (height * width)
    return to_bytes((images - mean) * share + mean)


_GRID = 32
"""The affine map moves pixels by multiples of 1/32 pixel, as OpenCV's warpAffine does."""
_FINE = 1024


_ELASTIC = {
    32: ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    244: ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)),
}
"""By side. 244, not 224: an error of the reference, with which the published images were made."""


@with_constants(*([[share * side for share in level] for level in table] for side, table in _ELASTIC.items()))
def elastic_transform(
    images: NDArray[np.uint8], draws: Draws, strength: float, sigma: float, reach: float
) -> NDArray[np.uint8]:
    """Apply the affine map that moves three points by up to a bound, then move each pixel by a random field of a given
    strength, blurred by a Gaussian. Published as fractions of the side."""
    height, width = images.shape[1:3]
    pulled = _warp_affine(images.astype(np.float64), draws.between("points", -reach, reach, 3, 2))
    along = [
        apply_gaussian_blur(draws.between(what, -1, 1, height, width), sigma, "symmetric", truncate=3) * strength
        for what in ("across", "down")
    ]
    rows, y, x = np.ogrid[: len(images), :height, :width]
    return to_bytes(_sample_bilinear(pulled, rows, y + along[1], x + along[0]))


def _warp_affine(values: NDArray[np.float64], moves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Apply the affine map that moves three points (below right of the centre, above right, above left) by `moves`
    (rows, 3, x and y); mirrored outside."""
    rows, height, width = values.shape[:3]
    third = min(height, width) // 3
    middle_y, middle_x = height // 2, width // 2
    ends = moves + np.array(
        [
            (middle_x + third, middle_y + third),
            (middle_x + third, middle_y - third),
            (middle_x - third, middle_y - third),
        ]
    )
    # The inverse map in closed form: from the second point one side of the triangle runs down, the other to the left.
    down, left = ends[:, 0] - ends[:, 1], ends[:, 2] - ends[:, 1]
    area = down[:, 0] * left[:, 1] - down[:, 1] * left[:, 0]
    length = 2 * third
    # To the source: x = origin_x + (along left) * -length, y = origin_y + (along down) * length.
    to_x = np.stack([down[:, 1], -down[:, 0]], axis=1) * (length / area)[:, None]
    to_y = np.stack([left[:, 1], -left[:, 0]], axis=1) * (length / area)[:, None]
    start_x = (middle_x + third) - (to_x[:, 0] * ends[:, 1, 0] + to_x[:, 1] * ends[:, 1, 1])
    start_y = (middle_y - third) - (to_y[:, 0] * ends[:, 1, 0] + to_y[:, 1] * ends[:, 1, 1])
    x = _map_coordinates(to_x, start_x, height, width)
    y = _map_coordinates(to_y, start_y, height, width)
    row = np.arange(rows)[:, None, None]
    total = np.zeros(values.shape)
    for below in (0, 1):
        weight_y = (y % _GRID if below else _GRID - y % _GRID) / _GRID
        at_y = _mirror_indices(y // _GRID + below, height)
        for right in (0, 1):
            weight_x = (x % _GRID if right else _GRID - x % _GRID) / _GRID
            at_x = _mirror_indices(x // _GRID + right, width)
            total += values[row, at_y, at_x] * (weight_y * weight_x)[..., None]
    return total


def _map_coordinates(
    factors: NDArray[np.float64], start: NDArray[np.float64], height: int, width: int
) -> NDArray[np.int64]:
    """The source of each pixel along one axis, in units of 1 / _GRID pixels, (rows, height, width)."""
    along_x = np.rint(factors[:, :1] * np.arange(width) * _FINE).astype(np.int64)
    along_y = np.rint((factors[:, 1:] * np.arange(height) + start[:, None]) * _FINE).astype(np.int64)
    step = _FINE // _GRID
    return (along_y[:, :, None] + along_x[:, None, :] + step // 2) // step


def _mirror_indices(places: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    """Mirror positions outside the border about the last pixel."""
    turn = places % (2 * side - 2)
    return np.minimum(turn, 2 * side - 2 - turn)


def _sample_bilinear(
    values: NDArray[np.float64], rows: NDArray[np.int64], y: NDArray[np.float64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Interpolate images linearly at positions between pixels; mirrored about the border of the last pixel."""
    low_y, low_x = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    ys, xs = (
        [_fold_indices(low + more, side) for more in (0, 1)]
        for low, side in ((low_y, values.shape[1]), (low_x, values.shape[2]))
    )
    right = (x - low_x)[..., None]
    upper, lower = (values[rows, at, xs[0]] + (values[rows, at, xs[1]] - values[rows, at, xs[0]]) * right for at in ys)
    return upper + (lower - upper) * (y - low_y)[..., None]


def _fold_indices(places: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    turn = places % (2 * side)
    return np.minimum(turn, 2 * side - 1 - turn)


@with_constants(
    (0.95, 0.9, 0.85, 0.75, 0.65),
    (0.6, 0.5, 0.4, 0.3, 0.25),
)
def pixelate(images: NDArray[np.uint8], draws: Draws, share: float) -> NDArray[np.uint8]:
    """Reduce the sides to a fraction, with each pixel the mean of those it covers, and enlarge them again."""
    box = import_pillow().Image.Resampling.BOX
    height, width = images.shape[1:3]
    result = np.empty_like(images)
    for row, image in enumerate(_iterate_pictures(images)):
        fewer = image.resize((int(width * share), int(height * share)), box)
        result[row] = np.asarray(fewer.resize((width, height), box)).reshape(result.shape[1:])
    return result


def _iterate_pictures(images: NDArray[np.uint8]) -> Iterator[Image]:
    """Pillow's images of an array; grey ones have one band."""
    for image in images:
        yield import_pillow().Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)


@with_constants(
    ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
)
def saturate(images: NDArray[np.uint8], draws: Draws, times: int, plus: float) -> NDArray[np.uint8]:
    """Change the saturation S of HSV to a S + b. Colourless pixels count as red, so grey images change only if b is not
    0."""
    values = to_three_channels(images).astype(np.float64)
    value = values.max(axis=-1, keepdims=True)
    spread = value - values.min(axis=-1, keepdims=True)
    saturation = np.clip(spread / np.maximum(value, 1) * times + plus, 0, 1)
    # The distance of a channel from the value, as a fraction of the maximum for the hue.
    depth = np.where(spread > 0, (value - values) / np.maximum(spread, 1), np.array([0.0, 1.0, 1.0]))
    return restore_channels(to_bytes(value - value * (saturation * depth)), images)


@with_constants(
    (80, 65, 58, 50, 40),
    (25, 18, 15, 10, 7),
)
def jpeg_compression(images: NDArray[np.uint8], draws: Draws, quality: int) -> NDArray[np.uint8]:
    """Compress with a quality and decompress, by Pillow; grey images as grey JPEG."""
    result = np.empty_like(images)
    for row, image in enumerate(_iterate_pictures(images)):
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality)
        result[row] = np.asarray(import_pillow().Image.open(file)).reshape(result.shape[1:])
    return result
