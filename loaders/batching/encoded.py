"""Recognise columns of encoded files, and the errors for files that cannot be decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData

if TYPE_CHECKING:
    import pyarrow as pa


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


class EncodedFiles:
    """The contents of n files, used like an object array of `bytes`, shape (n,). An integer index returns bytes; a
    slice, mask or index array returns those files, still unread; `numpy.asarray` reads all of them."""

    dtype = np.dtype(object)
    ndim = 1

    def __init__(self, stored: pa.ChunkedArray, places: NDArray[np.int64] | None = None) -> None:
        """stored: binary values. places: their indices, in order; by default all."""
        self.stored = stored
        self.places = np.arange(len(stored)) if places is None else places

    def __len__(self) -> int:
        return len(self.places)

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def content(self, index: int) -> memoryview:
        """Return one file's content, not copied."""
        return memoryview(self.stored[int(self.places[index])].as_buffer())

    def contents(self, places: Sequence[int] | NDArray[np.int64]) -> list[bytes | memoryview]:
        """Return the contents of several files at once."""
        return [self.content(int(index)) for index in places]

    @cached_property
    def key(self) -> str:
        """Identifies the contents: the sha256 of the concatenation of each file's length (uint64, little-endian) and
        bytes."""
        return digest_contents(self.content(index) for index in range(len(self)))

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> bytes: ...
    @overload
    def __getitem__(self, index: slice | NDArray[Any] | list[int]) -> EncodedFiles: ...
    def __getitem__(self, index: Any) -> bytes | EncodedFiles:
        if isinstance(index, int | np.integer):
            return bytes(self.content(int(index)))
        return self._some(self.places[index])

    def _some(self, places: NDArray[np.int64]) -> EncodedFiles:
        return EncodedFiles(self.stored, places)

    def __iter__(self) -> Iterator[bytes]:
        return (bytes(self.content(index)) for index in range(len(self)))

    def tolist(self) -> list[bytes]:
        return list(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = np.empty(len(self), object)
        array[:] = list(self)
        return array


def digest_contents(contents: Iterator[bytes | memoryview]) -> str:
    """Return the `key` of files with these contents."""
    hasher = sha256()
    for content in contents:
        hasher.update(len(content).to_bytes(8, "little"))
        hasher.update(content)
    return hasher.hexdigest()
