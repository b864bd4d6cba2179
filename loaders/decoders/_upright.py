"""One way to open a picture, for whatever reads its pixels: RGB, 8 bits a channel, upright.

8 bits: grey pixels of 16 bits are divided by the largest value of their bits (65,535 of 16) and rounded; of colours of
16 bits Pillow keeps the upper 8. For 32-bit whole numbers and for floating-point numbers no format says which value is
white: they are refused. RGB: grey is three equal channels, a palette its colours, CMYK what Pillow makes of it without
a colour profile; what is transparent keeps the colour that the file has for it (as torchvision, DomainBed and WILDS
read pictures). Upright: as the file's EXIF orientation says. Files of 8 bits without an orientation give the pixels
that `Image.open(file).convert("RGB")` does.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import MissingExtra

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
"""What makes a picture upright, by its EXIF orientation, in Pillow's words."""
_MAY_BE_TURNED = re.compile(rb"(?i)exif|tiff:orientation")


def import_pillow() -> Any:
    """Pillow; `MissingExtra` without it."""
    try:
        import PIL
        import PIL.Image
    except ImportError as error:
        raise MissingExtra("decoding pictures", "train") from error
    return PIL


def open_rgb(content: bytes | memoryview, side: int | None = None) -> Image:
    """The picture of a file, decoded whole, at its own size. side: a large JPEG may be decoded at a half, quarter or
    eighth of it, as long as either side has that many pixels. Raises what Pillow raises, and `ValueError` for pixels
    that have no black and white."""
    with import_pillow().Image.open(io.BytesIO(content)) as opened:
        if side is not None:
            opened.draft("RGB", (side, side))
        opened.load()  # Pillow rotates a TIFF itself, and then drops its orientation
        turn = _find_transpose(opened)
        image: Image = _to_eight_bits(opened).convert("RGB")
    return image if turn is None else image.transpose(turn)


def is_plain(content: bytes) -> bool:
    """Whether every reader shows a picture as it is read here: no orientation turns it, and no PNG has 16 bits."""
    if content.startswith(b"\x89PNG") and content[24:25] == b"\x10":
        return False
    if not _MAY_BE_TURNED.search(content):
        return True
    with import_pillow().Image.open(io.BytesIO(content)) as image:
        return _find_transpose(image) is None


def _find_transpose(image: Image) -> Any:
    """How a picture is turned to be upright; None where it is, or where its EXIF is damaged."""
    try:
        turn = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # it meets anything, and says nothing of the pixels
        return None
    return turn and import_pillow().Image.Transpose[turn]


def _to_eight_bits(image: Image) -> Image:
    """The picture with 8 bits a channel."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        tags = getattr(image, "tag_v2", {})
        white = 2 ** tags.get(_BITS, (16,))[0] - 1
        values = np.minimum((np.asarray(image).astype(np.int64) * 255 + white // 2) // white, 255).astype(np.uint8)
        image: Image = import_pillow().Image.fromarray(255 - values if tags.get(_PHOTOMETRIC) == 0 else values)
        return image
    if image.mode in ("I", "F"):
        raise ValueError(f"no format says which of its values are black and white (Pillow's mode {image.mode})")
    return image
