"""One encoded picture as Pillow opens it, for whatever resizes or reads it in its own way."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from ...core.errors import BadData, MissingExtra, first_line

if TYPE_CHECKING:
    from PIL.Image import Image


def opened(content: bytes, named: str) -> Image:
    """A picture (JPEG, PNG, WebP, TIFF ..) in RGB at its own size, decoded whole.

    Raises `BadData`, which begins with `named`, for one that cannot be decoded, and `MissingExtra` without Pillow."""
    try:
        import PIL.Image
    except ImportError as error:
        raise MissingExtra("decoding pictures", "train") from error
    try:
        with PIL.Image.open(io.BytesIO(content)) as picture:
            return picture.convert("RGB")
    except MemoryError:  # says nothing of the picture
        raise
    except Exception as error:  # a decoder meets anything, and raises anything
        raise BadData(f"{named} cannot be decoded: {first_line(error)}") from error
