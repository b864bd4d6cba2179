"""Decode and resize images on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...core.errors import get_first_line
from ..decoders import DEFAULT, Decoder, load_decoder
from ..decoders.pillow import import_pillow, open_rgb
from .encoded import BadImage, EncodedFiles

if TYPE_CHECKING:
    from PIL.Image import Image

Files: TypeAlias = "Sequence[bytes | memoryview] | NDArray[Any] | EncodedFiles"
"""The contents of image files: in a list or an object array, or in a memory-mapped file."""

_AT_ONCE = 16
"""Number of images of one job of a thread."""

_PIECE_BYTES = 32 * 2**20
"""Number of bytes of pixels that are yielded at once: large writes make files that are fast to read."""


def decode_images(files: Files, side: int, name: str = DEFAULT) -> NDArray[np.uint8]:
    """Decode images (JPEG, PNG, WebP, TIFF ..) by the decoder `name` to RGB pixels, shape (n, side, side, 3).

    Raises `BadImage` with the position of an image that cannot be decoded.
    """
    pixels = np.empty((len(files), side, side, 3), np.uint8)
    start = 0
    for piece in iterate_decoded(files, side, load_decoder(name)):
        pixels[start : start + len(piece)] = piece
        start += len(piece)
    return pixels


def iterate_decoded(files: Files, side: int, by: Decoder) -> Iterator[NDArray[np.uint8]]:
    """Yield the pixels of images in order, in pieces (m, side, side, 3), decoded on all cores."""
    rows = max(1, _PIECE_BYTES // (side * side * 3))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:  # decoders release the GIL
        for first in range(0, len(files), rows):
            places = np.arange(first, min(first + rows, len(files)))
            contents, pixels = read_contents(files, places), np.empty((len(places), side, side, 3), np.uint8)
            decode = partial(_decode_job, contents, pixels, first, len(files), side, by)
            jobs = range(0, len(places), _AT_ONCE)
            list(map(decode, jobs) if len(jobs) == 1 else pool.map(decode, jobs))  # one job needs no thread
            yield pixels


def _decode_job(
    contents: Sequence[bytes | memoryview],
    pixels: NDArray[np.uint8],
    first: int,
    count: int,
    side: int,
    by: Decoder,
    start: int,
) -> None:
    """Decode some images of a piece, which begins with the image `first` of `count`."""
    for number in range(start, min(start + _AT_ONCE, len(contents))):
        pixels[number] = _decode_content(contents[number], first + number, count, side, by)


def find_readable_images(files: Files, name: str = DEFAULT) -> NDArray[np.bool_]:
    """Return which images can be decoded, shape (n,)."""
    by, is_readable = load_decoder(name), np.ones(len(files), bool)
    for index in range(len(files)):
        try:
            _decode_content(files[index], index, len(files), 1, by)
        except BadImage:
            is_readable[index] = False
    return is_readable


def read_contents(files: Files, rows: NDArray[np.int64]) -> list[bytes | memoryview]:
    """Return several files' contents, which a stream reads at once."""
    return files.contents(rows) if isinstance(files, EncodedFiles) else [files[row] for row in rows.tolist()]


def _decode_content(content: bytes | memoryview, index: int, count: int, side: int, by: Decoder) -> NDArray[np.uint8]:
    try:
        return by.decode(content, side)
    except MemoryError:  # not a fault of the file
        raise
    except Exception as error:  # a damaged file may raise any exception
        raise BadImage.at(index, count, get_first_line(error)) from error


Given = Sequence[bytes] | NDArray[Any]
"""Images: files (JPEG, PNG, WebP, TIFF ..), or uint8 arrays, (n, height, width) or with channels first or last."""


def open_image(given: Given, index: int) -> Image:
    """Open one of the images in RGB at its own size, fully decoded and upright (`decoders/pillow.py`).

    Raises `BadImage` if it cannot be decoded, and `MissingExtra` without Pillow."""
    library = import_pillow()
    content = given[index]
    if isinstance(content, np.ndarray):
        planes = np.moveaxis(content, 0, -1) if content.ndim == 3 and len(content) < content.shape[-1] else content
        grey = planes[..., 0] if planes.shape[2:] == (1,) else planes
        array: Image = library.Image.fromarray(np.ascontiguousarray(grey)).convert("RGB")
        return array
    try:
        return open_rgb(content)
    except MemoryError:  # not a fault of the file
        raise
    except Exception as error:  # a damaged file may raise any exception
        raise BadImage.at(index, len(given), get_first_line(error)) from error


def map_images(given: Given, transform: Callable[[Image], NDArray[Any]]) -> NDArray[Any]:
    """Apply `transform` to each image, on all cores. Returns shape (n, ..)."""
    threads = min(len(given), os.cpu_count() or 1)
    if threads <= 1:
        return np.stack([transform(open_image(given, index)) for index in range(len(given))])
    with ThreadPoolExecutor(threads) as pool:  # Pillow releases the GIL
        return np.stack(list(pool.map(lambda index: transform(open_image(given, index)), range(len(given)))))
