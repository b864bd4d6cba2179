"""Recognise columns of encoded files, and the errors for files that cannot be decoded."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData
from .encoded_files import EncodedFiles


class BadFile(BadData):
    """A file that cannot be decoded: its position in the column, and why."""

    what = "file"

    def __init__(self, message: str, position: int = -1, why: str = "") -> None:
        super().__init__(message)
        self.position, self.why = position, why

    @classmethod
    def at(cls, position: int, count: int, why: str) -> Self:
        return cls(f"{cls.what} {position} of {count} cannot be decoded: {why}", position, why)


class BadImage(BadFile):
    """An image that cannot be decoded."""

    what = "image"


class BadAudio(BadFile):
    """An audio clip that cannot be decoded."""

    what = "audio clip"


def is_encoded(column: NDArray[Any]) -> bool:
    """Whether a column has encoded files (images or audio), not texts."""
    if isinstance(column, EncodedFiles):
        return len(column) > 0
    return column.dtype == object and len(column) > 0 and isinstance(column[0], bytes)


def is_audio(column: NDArray[Any]) -> bool:
    """Whether encoded files are audio: one of them has the header of a WAV file."""
    return any(file[:4] == b"RIFF" and file[8:12] == b"WAVE" for file in column)


def is_pixels(column: NDArray[Any]) -> bool:
    """Whether a column has images as uint8 arrays, (n, height, width) or with channels."""
    return column.dtype == np.uint8 and column.ndim in (3, 4)


_STARTS = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG": "image/png", b"GIF8": "image/gif", b"BM": "image/bmp"}
_STARTS |= {b"II*\x00": "image/tiff", b"MM\x00*": "image/tiff", b"fLaC": "audio/flac", b"OggS": "audio/ogg"}
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def find_media_type(content: bytes) -> str:
    """Return the media type of a file by its first bytes (RFC 2046); `application/octet-stream` if unknown."""
    if content[:4] == b"RIFF" and content[8:12] in _RIFF:
        return _RIFF[content[8:12]]
    return next((kind for start, kind in _STARTS.items() if content.startswith(start)), "application/octet-stream")
