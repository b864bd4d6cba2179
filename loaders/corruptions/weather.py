"""Weather: snow (flakes blown along a direction), frost (photographs of ice), fog (clouds by the diamond-square
algorithm of Fournier, Fussell and Carpenter 1982), brightness, and spatter (drops of water, or of mud)."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from ...core.errors import BadData
from ...splits.manifest import FilePin
from ..acquire.fetch import fetch_file
from ..decoders.pillow import import_pillow
from ._draws import Draws
from ._filters import apply_filter, apply_gaussian_blur, apply_motion_blur, zoom_in
from ._pixels import restore_channels, to_bytes, to_luminance, to_three_channels, with_constants


@with_constants(
    (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
)
def snow(
    images: NDArray[np.uint8],
    draws: Draws,
    mean: float,
    deviation: float,
    zoom: float,
    least: float,
    radius: float,
    sigma: float,
    image_share: float,
) -> NDArray[np.uint8]:
    """Draw normal numbers (mean, deviation), zoom in, set those below a bound to 0, and blur the rest (radius, sigma)
    along an angle between -135 and -45 degrees. Add them twice, once rotated by 180 degrees, to the image, of which a
    fraction is not whitened."""
    flakes = zoom_in(mean + deviation * draws.normal("flakes", *images.shape[1:3]), zoom)
    flakes[flakes < least] = 0
    blown = apply_motion_blur(to_bytes(flakes * 255)[..., None], int(radius), sigma, draws.between("angle", -135, -45))
    white = np.maximum(images, to_luminance(images) * 1.5 + 127.5)
    return to_bytes(image_share * images + (1 - image_share) * white + blown + blown[:, ::-1, ::-1])


_FOLDER = "https://raw.githubusercontent.com/hendrycks/robustness/8190fe329f5f072a06e3a2aea02bb5dda69aed9f/ImageNet-C/create_c"
_PHOTOGRAPHS = (
    ("frost1.png", 1_199_930, "ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755"),
    ("frost2.png", 299_002, "fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137"),
    ("frost3.png", 299_002, "2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504"),
    ("frost4.jpg", 36_734, "3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e"),
    ("frost5.jpg", 155_150, "5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2"),
)
"""The five photographs that are used; a sixth is published, but the reference never draws it."""


@with_constants(
    ((1, 0.2, 5), (1, 0.3, 5), (0.9, 0.4, 5), (0.85, 0.4, 5), (0.75, 0.45, 5)),
    ((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
)
def frost(
    images: NDArray[np.uint8], draws: Draws, image_share: float, frost_share: float, step: int
) -> NDArray[np.uint8]:
    """Add a fraction of the image and a fraction of a random crop of a random photograph of ice. For small images
    the photograph is reduced to every fifth pixel (`step`). The photographs are those of the reference, fetched by
    sha256 from a folder of `FARSHIFT_MIRRORS`, or where they are published."""
    height, width = images.shape[1:3]
    ice = [_load_photograph(number)[step // 2 :: step, step // 2 :: step] for number in range(len(_PHOTOGRAPHS))]
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


@cache
def _load_photograph(number: int) -> NDArray[np.uint8]:
    """A photograph, shape (height, width, 3)."""
    name, size, sha256 = _PHOTOGRAPHS[number]
    mirror = {"sort": "https", "url": f"{_FOLDER}/{name}"}
    path = fetch_file(FilePin.model_validate({"name": name, "bytes": size, "sha256": sha256, "mirrors": [mirror]}))
    with import_pillow().Image.open(path) as photograph:
        return np.asarray(photograph.convert("RGB"))


@with_constants(
    ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
)
def fog(images: NDArray[np.uint8], draws: Draws, amount: float, decay: float) -> NDArray[np.uint8]:
    """Add a multiple of a map of clouds from 0 to white, and rescale the sum to the image's range."""
    height, width = images.shape[1:3]
    cloud = make_cloud_maps(max(height, width), decay, draws)[:, :height, :width, None]
    brightest = images.max(axis=(1, 2, 3), keepdims=True).astype(np.float64)
    return to_bytes((images + 255 * amount * cloud) * brightest / (brightest + 255 * amount))


def make_cloud_maps(side: int, decay: float, draws: Draws) -> NDArray[np.float64]:
    """Return maps from 0 to 1, shape (rows, n, n), where n is the least power of two that is at least `side`: each
    pixel is the mean of four neighbours plus a random number, repeated at half the distance with the randomness divided
    by `decay`."""
    wide = 1 << (side - 1).bit_length()
    maps = np.zeros((len(draws.ids), wide, wide))
    step, wild = wide, 100.0

    def filled(what: str, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        # The reference multiplies by its randomness twice.
        return sums / 4 + wild * draws.between(f"{what} {step}", -wild, wild, *sums.shape[1:])

    while step >= 2:
        half = step // 2
        corners = maps[:, ::step, ::step]
        pairs = corners + np.roll(corners, -1, axis=1)
        maps[:, half::step, half::step] = filled("squares", pairs + np.roll(pairs, -1, axis=2))
        middles, corners = maps[:, half::step, half::step], maps[:, ::step, ::step]
        above = (middles + np.roll(middles, 1, axis=1)) + (corners + np.roll(corners, -1, axis=2))
        maps[:, ::step, half::step] = filled("rows", above)
        beside = (middles + np.roll(middles, 1, axis=2)) + (corners + np.roll(corners, -1, axis=1))
        maps[:, half::step, ::step] = filled("columns", beside)
        step, wild = half, wild / decay
    maps -= maps.min(axis=(1, 2), keepdims=True)
    normalised: NDArray[np.float64] = maps / maps.max(axis=(1, 2), keepdims=True)
    return normalised


@with_constants(
    (0.05, 0.1, 0.15, 0.2, 0.3),
    (0.1, 0.2, 0.3, 0.4, 0.5),
)
def brightness(images: NDArray[np.uint8], draws: Draws, added: float) -> NDArray[np.uint8]:
    """Add a constant to the value V of HSV (1 is white)."""
    values = images.astype(np.float64)
    value = values.max(axis=-1, keepdims=True)
    brighter = np.minimum(value + 255 * added, 255)
    # With constant hue and saturation all channels keep their ratio; black has none, and becomes grey.
    return to_bytes(np.where(values == value, brighter, values * brighter / np.maximum(value, 1)))


_WATER = np.array([175, 238, 238])
_MUD = np.array([63, 42, 20])

_RELIEF = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
"""Light from above left."""
_FARTHEST = 20
"""Drops look the same beyond this distance in pixels from their edge."""

_LOW, _HIGH = 50, 150
_TANGENT = 13573
"""tan 22.5 degrees in units of 2^-15."""

_STRAIGHT, _DIAGONAL, _KNIGHT = (round(length * 65536) for length in (1, 1.4, 2.1969))
"""The lengths of steps (Borgefors 1986), in units of 2^-16 pixels."""


@with_constants(
    (
        (0.62, 0.1, 0.7, 0.7, 0.5, False),
        (0.65, 0.1, 0.8, 0.7, 0.5, False),
        (0.65, 0.3, 1, 0.69, 0.5, False),
        (0.65, 0.1, 0.7, 0.69, 0.6, True),
        (0.65, 0.1, 0.5, 0.68, 0.6, True),
    ),
    (
        (0.65, 0.3, 4, 0.69, 0.6, False),
        (0.65, 0.3, 3, 0.68, 0.6, False),
        (0.65, 0.3, 2, 0.68, 0.5, False),
        (0.65, 0.3, 1, 0.65, 1.5, True),
        (0.67, 0.4, 1, 0.65, 1.5, True),
    ),
)
def spatter(
    images: NDArray[np.uint8],
    draws: Draws,
    mean: float,
    deviation: float,
    sigma: float,
    least: float,
    last: float,
    is_mud: bool,
) -> NDArray[np.uint8]:
    """Blur normal numbers (mean, deviation) by a Gaussian; there is liquid where they reach a bound. Water is shaded
    like a relief, by the distance from the drop's edge; mud is opaque."""
    liquid = apply_gaussian_blur(mean + deviation * draws.normal("liquid", *images.shape[1:3]), sigma)
    coloured = to_three_channels(images).astype(np.float64)
    if is_mud:
        cover = apply_gaussian_blur((liquid > least).astype(np.float64), last)[..., None]
        cover[cover < 0.8] = 0
        return restore_channels(to_bytes(coloured * (1 - cover) + _MUD * cover), images)
    liquid[liquid < least] = 0
    level = (liquid * 255).astype(np.int64) & 255
    shine = (level * _compute_relief(level)).astype(np.float64)
    # Without any light the reference divides zero by zero; here the image is unchanged.
    shine *= last / np.maximum(shine.max(axis=(1, 2), keepdims=True), 1)
    return restore_channels(to_bytes(coloured + shine[..., None] * _WATER), images)


def _compute_relief(level: NDArray[np.int64]) -> NDArray[np.int64]:
    """The brightness of each pixel of the liquid, 0 to 255, (rows, height, width)."""
    distance = np.minimum(compute_distances(detect_edges(level)), _FARTHEST)
    smooth = (_sum_boxes(distance) / 9).astype(np.int64)
    even = np.stack([_equalise_histogram(plane) for plane in smooth]) if len(smooth) else smooth
    lit = np.clip(apply_filter(even.astype(np.float64), _RELIEF.astype(np.float64), "reflect"), 0, 255)
    return np.floor(_sum_boxes(lit) / 9 + 0.5).astype(np.int64)


def _sum_boxes(values: NDArray[np.float64]) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = ndimage.convolve(values, np.ones((1, 3, 3)), mode="mirror")
    return sums


def _equalise_histogram(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Equalise the histogram of an image."""
    counts = np.bincount(values.ravel(), minlength=256)
    first = int(np.flatnonzero(counts)[0])
    rest = values.size - int(counts[first])
    if not rest:
        return values
    counts[first] = 0
    scale = np.float32(255) / np.float32(rest)
    levels = np.rint(np.cumsum(counts).astype(np.float32) * scale)
    result: NDArray[np.int64] = np.minimum(levels, 255).astype(np.int64)[values]
    return result


def detect_edges(images: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each pixel of images (rows, height, width) of 0..255 is on an edge (Canny 1986): the sum of the
    absolute Sobel gradients is a local maximum along the gradient, and over 150, or over 50 and connected to such a
    pixel."""
    sobel = np.outer([1, 2, 1], [-1, 0, 1])
    right, down = (ndimage.correlate(images, kernel[None], mode="nearest") for kernel in (sobel, sobel.T))
    size = np.abs(right) + np.abs(down)
    across, along = np.abs(right) * _TANGENT, np.abs(down) << 15
    steep = across + (np.abs(right) << 16)
    turn = (right ^ down) < 0
    near = np.pad(size, [(0, 0), (1, 1), (1, 1)])

    def beside(y: int, x: int) -> NDArray[np.int64]:
        height, width = size.shape[1:]
        neighbour: NDArray[np.int64] = near[:, 1 + y : 1 + y + height, 1 + x : 1 + x + width]
        return neighbour

    flat = (size > beside(0, -1)) & (size >= beside(0, 1))
    upright = (size > beside(-1, 0)) & (size >= beside(1, 0))
    falling = (size > beside(-1, -1)) & (size > beside(1, 1))
    rising = (size > beside(-1, 1)) & (size > beside(1, -1))
    peak = np.where(along < across, flat, np.where(along > steep, upright, np.where(turn, rising, falling)))
    weak = peak & (size > _LOW)
    connected: NDArray[np.bool_] = ndimage.binary_propagation(
        weak & (size > _HIGH), structure=np.ones((1, 3, 3)), mask=weak
    )
    return connected


def compute_distances(marked: NDArray[np.bool_], farthest: int = 32) -> NDArray[np.float64]:
    """Return the length of the shortest path from each pixel to a marked one, in steps to the eight neighbours and
    knight's moves, up to `farthest` pixels; shape (rows, height, width)."""
    height, width = marked.shape[1:]
    far = farthest * _STRAIGHT
    distance = np.where(marked, 0, far)
    steps = [(y, x) for y in (-2, -1, 0, 1, 2) for x in (-2, -1, 0, 1, 2) if abs(y) == 1 or abs(x) == 1]
    lengths = {1: _STRAIGHT, 2: _DIAGONAL, 5: _KNIGHT}
    while True:
        padded = np.pad(distance, [(0, 0), (2, 2), (2, 2)], constant_values=far)
        nearer = distance
        for y, x in steps:
            way = padded[:, 2 + y : 2 + y + height, 2 + x : 2 + x + width] + lengths[y * y + x * x]
            nearer = np.minimum(nearer, way)
        if (nearer == distance).all():
            return distance / _STRAIGHT
        distance = nearer
