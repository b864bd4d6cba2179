"""Pillow: JPEG, PNG, WebP, TIFF and more. It releases the interpreter's lock while it works."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import MissingExtra


def version() -> str:
    """Its name and version."""
    return f"Pillow {_pillow().__version__}"


def decode(content: bytes | memoryview, side: int) -> NDArray[np.uint8]:
    """RGB pixels (side, side, 3). A large JPEG is decoded at a half, quarter or eighth of its size."""
    image = _pillow().Image
    with image.open(io.BytesIO(content)) as picture:
        picture.draft("RGB", (side, side))
        return np.asarray(picture.convert("RGB").resize((side, side), image.Resampling.BILINEAR))


def _pillow() -> Any:
    try:
        import PIL
        import PIL.Image
    except ImportError as error:
        raise MissingExtra("decoding pictures", "train") from error
    return PIL
