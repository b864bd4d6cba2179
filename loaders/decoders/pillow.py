"""Pillow: JPEG, PNG, WebP, TIFF and more. It releases the GIL."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._upright import import_pillow, open_rgb


def version() -> str:
    """Return its name and version."""
    return f"Pillow {import_pillow().__version__}"


def decode(content: bytes | memoryview, side: int) -> NDArray[np.uint8]:
    """Decode to RGB pixels (side, side, 3). A large JPEG is decoded at a half, quarter or eighth of its size."""
    return np.asarray(open_rgb(content, side).resize((side, side), import_pillow().Image.Resampling.BILINEAR))
