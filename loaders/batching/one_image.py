"""Open images one by one as Pillow images, for code that resizes them itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import get_first_line
from ..decoders._upright import import_pillow, open_rgb
from .encoded import BadImage

if TYPE_CHECKING:
    from PIL.Image import Image

Given = Sequence[bytes] | NDArray[Any]
"""Images: files (JPEG, PNG, WebP, TIFF ..), or uint8 arrays, (n, height, width) or with channels first or last."""


def open_image(given: Given, index: int) -> Image:
    """Open one of the images in RGB at its own size, fully decoded and upright (`decoders/_upright.py`).

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
