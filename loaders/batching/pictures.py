"""Encoded pictures as pixels: decoded and resized when they are used, on all cores."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, MissingExtra, first_line

_AT_ONCE = 64
"""Pictures of one job of a thread."""


def decoded(files: Sequence[bytes], side: int) -> NDArray[np.uint8]:
    """The pixels of pictures (JPEG, PNG, WebP, TIFF ..), as RGB, shape (n, side, side, 3): resized by bilinear
    interpolation over all pixels that one covers, whatever their proportions (as DomainBed resizes).

    By Pillow, whose version decides the last bits of a JPEG: `decoder` names it for run cards. Raises `BadData` with
    the place of a picture that cannot be decoded.
    """
    pixels = np.empty((len(files), side, side, 3), np.uint8)
    starts = range(0, len(files), _AT_ONCE)
    threads = min(len(starts), os.cpu_count() or 1)
    if threads <= 1:
        for start in starts:
            _decode(files, pixels, start)
        return pixels
    with ThreadPoolExecutor(threads) as pool:  # Pillow frees the interpreter's lock
        list(pool.map(partial(_decode, files, pixels), starts))
    return pixels


def decoder() -> str:
    """What decodes, with its version."""
    return f"Pillow {_pillow().__version__}"


def _decode(files: Sequence[bytes], pixels: NDArray[np.uint8], start: int) -> None:
    image = _pillow().Image
    side = pixels.shape[1]
    for place in range(start, min(start + _AT_ONCE, len(files))):
        try:
            with image.open(io.BytesIO(files[place])) as picture:
                picture.draft("RGB", (side, side))  # a large JPEG is decoded at a half, quarter or eighth of its size
                found = picture.convert("RGB").resize((side, side), image.Resampling.BILINEAR)
        except MemoryError:  # says nothing of the picture
            raise
        except Exception as error:  # a decoder meets anything, and raises anything
            raise BadData(f"picture {place} of {len(files)} cannot be decoded: {first_line(error)}") from error
        pixels[place] = np.asarray(found)


def _pillow() -> Any:
    try:
        import PIL
        import PIL.Image
    except ImportError as error:
        raise MissingExtra("decoding pictures", "train") from error
    return PIL
