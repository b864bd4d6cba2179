"""Small images as PNG files in data: URLs. The PNG data are stored uncompressed, so that the bytes do not depend on the
version of a compression library."""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Sequence
from zlib import adler32, crc32

import numpy as np

DARK = 64
"""An image whose brightest value is below this one is brightened."""

MOST_ENCODED = 48 << 10
"""Maximum size in bytes of an encoded image on a page."""

_FORMATS = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"))

BLOCK = 65_535
"""Maximum size in bytes of a stored block (RFC 1951, 3.2.4)."""


def make_data_uri(values: Sequence[int], shape: tuple[int, ...]) -> str:
    """Return a data: URL of an image of (height, width) or (height, width, 1 or 3) bytes, in C order."""
    pixels = np.asarray(values, np.uint8).reshape(shape)
    if 0 < int(pixels.max(initial=0)) < DARK:  # few grey levels, such as scans with values 0 to 16
        pixels = pixels * np.uint8(255 // int(pixels.max()))
    return "data:image/png;base64," + b64encode(encode_png(pixels)).decode()


def make_encoded_uri(content: bytes) -> str:
    """Return a data: URL of an encoded image: PNG, JPEG or GIF by its first bytes, of at most `MOST_ENCODED` bytes;
    empty for any other."""
    known = next((name for head, name in _FORMATS if content.startswith(head)), "")
    fits = known and len(content) <= MOST_ENCODED
    return f"data:image/{known};base64,{b64encode(content).decode()}" if fits else ""


def encode_png(pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    """Encode grey or RGB pixels of shape (height, width[, channels]) as a PNG file (ISO/IEC 15948)."""
    height, width = pixels.shape[:2]
    colour = 2 if pixels.ndim == 3 and pixels.shape[2] == 3 else 0
    lines = pixels.reshape(height, -1)
    raw = np.concatenate([np.zeros((height, 1), np.uint8), lines], axis=1).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", _encode_stored_blocks(raw)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_encode_chunk(name, content) for name, content in chunks)


def _encode_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", crc32(name + content))


def _encode_stored_blocks(raw: bytes) -> bytes:
    """Encode bytes as a zlib stream of stored blocks (RFC 1950, RFC 1951)."""
    pieces = [raw[at : at + BLOCK] for at in range(0, len(raw), BLOCK)] or [b""]
    blocks = [
        struct.pack("<BHH", number == len(pieces) - 1, len(piece), len(piece) ^ 0xFFFF) + piece
        for number, piece in enumerate(pieces)
    ]
    return b"\x78\x01" + b"".join(blocks) + struct.pack(">I", adler32(raw))
