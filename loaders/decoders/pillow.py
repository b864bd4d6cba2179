"""Pillow: JPEG, PNG, WebP, TIFF and more, opened uniformly: RGB, 8 bits a channel, upright. It releases the GIL.

8 bits: 16-bit grey pixels are divided by their maximum (65,535 for 16 bits) and rounded; of 16-bit colours Pillow keeps
the upper 8 bits. Formats do not define white for 32-bit integers and floating-point numbers, so these raise an error.
RGB: grey becomes three equal channels, a palette its colours, CMYK is converted by Pillow without a colour profile;
transparent pixels keep their colour in the file (as in torchvision, DomainBed and WILDS). Upright: by the file's EXIF
orientation. 8-bit files without an orientation give the same pixels as `Image.open(file).convert("RGB")`.
"""

from __future__ import annotations

import io
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import MissingExtra
from ...core.limits import PIXELS

if TYPE_CHECKING:
    from PIL.Image import Image

_ORIENTATION, _BITS, _PHOTOMETRIC = 0x0112, 258, 262
_TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
"""By EXIF orientation, Pillow's name of the transposition that makes an image upright."""
_MAY_BE_TURNED = re.compile(rb"(?i)exif|tiff:orientation")


def import_pillow() -> Any:
    """Import Pillow. Raises `MissingExtra` without it."""
    try:
        import PIL
        import PIL.Image
    except ImportError as error:
        raise MissingExtra("decoding images", "train") from error
    return PIL


def open_rgb(content: bytes | memoryview, side: int | None = None) -> Image:
    """Decode an image file completely, at its own size. side: a large JPEG may be decoded at a half, quarter or eighth
    of its size, as long as both sides have at least this many pixels. Raises Pillow's exceptions, and `ValueError` for
    too many pixels or such without a defined black and white."""
    with import_pillow().Image.open(io.BytesIO(content)) as opened:
        if math.prod(opened.size) > PIXELS:
            raise ValueError(f"it has {' x '.join(map(str, opened.size))} pixels; at most {PIXELS:,} are decoded")
        if side is not None:
            opened.draft("RGB", (side, side))
        opened.load()  # Pillow rotates a TIFF itself, and then drops its orientation
        turn = _find_transpose(opened)
        image: Image = _to_eight_bits(opened).convert("RGB")
    return image if turn is None else image.transpose(turn)


def is_plain(content: bytes) -> bool:
    """Whether every reader decodes an image as this module does: it has no orientation, and is not a 16-bit PNG."""
    if content.startswith(b"\x89PNG") and content[24:25] == b"\x10":
        return False
    if not _MAY_BE_TURNED.search(content):
        return True
    with import_pillow().Image.open(io.BytesIO(content)) as image:
        return _find_transpose(image) is None


def _find_transpose(image: Image) -> Any:
    """The transposition that makes an image upright; None if it is upright, or its EXIF is damaged."""
    try:
        turn = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # damaged EXIF may raise any exception, and does not affect the pixels
        return None
    return turn and import_pillow().Image.Transpose[turn]


def _to_eight_bits(image: Image) -> Image:
    """Convert an image to 8 bits a channel."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        tags = getattr(image, "tag_v2", {})
        white = 2 ** tags.get(_BITS, (16,))[0] - 1
        values = np.minimum((np.asarray(image).astype(np.int64) * 255 + white // 2) // white, 255).astype(np.uint8)
        grey: Image = import_pillow().Image.fromarray(255 - values if tags.get(_PHOTOMETRIC) == 0 else values)
        return grey
    if image.mode in ("I", "F"):
        raise ValueError(f"its format does not define black and white (Pillow's mode {image.mode})")
    return image


def version() -> str:
    """Return its name and version."""
    return f"Pillow {import_pillow().__version__}"


def decode(content: bytes | memoryview, side: int) -> NDArray[np.uint8]:
    """Decode to RGB pixels (side, side, 3). A large JPEG is decoded at a half, quarter or eighth of its size."""
    return np.asarray(open_rgb(content, side).resize((side, side), import_pillow().Image.Resampling.BILINEAR))
