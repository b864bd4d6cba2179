"""The pixels of many pictures, read some rows at a time: decoded once into the cache, and mapped from there.

An entry of the cache (`pictures/<key>.npy`) holds the pixels of some pictures in their order. Its key says which
pictures (a digest of their files' bytes), the side, the interpolation, and the decoder with its version: another
decoder, or another version of one, has entries of its own. What would not fit is decoded whenever it is read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.canonical import identity_of
from ...core.errors import BadData, FarshiftError
from ...core.files import cache_root
from ...core.progress import advance, say
from ..cache.limit import cache_limit, size_in_words
from ..cache.store import stored
from ..decoders import DEFAULT, Decoder, decoder
from .encoded import BadPicture
from .encoded_files import EncodedFiles, digest_of
from .pictures import Files, content_of, decoded, decoded_pieces

INTERPOLATION = "bilinear"

_READ_BYTES = 32 * 2**20
_TOLD_FROM = 1024
"""Pictures from which on decoding takes long enough to be told about."""

Rows = NDArray[np.int64]


class Pixels(Protocol):
    """Pictures of one shape, uint8. `shape`: (n, ..); `key` tells them from others by their content."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def key(self) -> str: ...

    def take(self, rows: Rows, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        """The pictures at these places, in memory of their own or in `out`."""
        ...


@dataclass(frozen=True)
class HeldPixels:
    """Pixels in memory, or mapped from a file. known: their key, where it is; else they are told by their bytes."""

    array: NDArray[np.uint8]
    known: str = ""

    @cached_property
    def key(self) -> str:
        if self.known:
            return self.known
        found = blake2b(repr(self.array.shape).encode(), digest_size=16)
        found.update(np.ascontiguousarray(self.array).data)
        return found.hexdigest()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def take(self, rows: Rows, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        return np.take(self.array, rows, axis=0, mode="clip", out=out)


@dataclass(frozen=True)
class EncodedPixels:
    """Pictures that are decoded whenever they are read."""

    files: Files
    side: int
    by: Decoder
    key: str

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.files), self.side, self.side, 3)

    def take(self, rows: Rows, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        try:
            found = decoded(_contents(self.files, rows), self.side, self.by.name)
        except BadPicture as error:
            raise BadPicture.at(int(rows[error.place]), len(self.files), error.why) from error
        if out is None:
            return found
        out[:] = found
        return out


def _contents(files: Files, rows: Rows) -> list[bytes]:
    if isinstance(files, EncodedFiles):
        return [bytes(content) for content in files.contents(rows)]
    return [bytes(content_of(files, int(row))) for row in rows]


def pieces(pixels: Pixels) -> Iterator[NDArray[np.uint8]]:
    """All pictures in their order, some at a time."""
    if isinstance(pixels, EncodedPixels):
        yield from decoded_pieces(pixels.files, pixels.side, pixels.by)
        return
    rows = pixels.shape[0]
    step = max(1, _READ_BYTES // max(1, int(np.prod(pixels.shape[1:]))))
    for start in range(0, rows, step):
        yield pixels.take(np.arange(start, min(start + step, rows)))


def whole(pixels: Pixels) -> NDArray[np.uint8]:
    """All pictures: mapped ones as they are mapped, others in memory."""
    return pixels.array if isinstance(pixels, HeldPixels) else pixels.take(np.arange(pixels.shape[0]))


def opened(files: Files, side: int, name: str = DEFAULT) -> Pixels:
    """The pixels of encoded pictures, (n, side, side, 3), by the decoder `name`: mapped from the cache, where they are
    decoded first if they are not there yet.

    Where they would not fit (the cache's limit, the disk) or the cache cannot be written, a line says so, and they are
    decoded whenever they are read. Raises `BadPicture` for a picture that cannot be decoded; the cache then holds
    nothing of it."""
    by = decoder(name)
    key = _key(files, side, by)
    path, size = cache_root() / "pictures" / f"{key}.npy", len(files) * side * side * 3
    if not len(files):
        return HeldPixels(np.empty((0, side, side, 3), np.uint8), key)
    why = "" if path.exists() else _too_large(path, size)
    if not why:
        try:
            return HeldPixels(stored(path, lambda target: _write(target, files, side, by), _mapped), key)
        except BadData:
            raise
        except FarshiftError as error:
            why = str(error)
    if len(files) > _TOLD_FROM:
        say(f"{len(files):,} pictures are decoded whenever they are read: {why}")
    return EncodedPixels(files, side, by, key)


def in_cache(files: Files, side: int, name: str = DEFAULT) -> bool:
    """Whether these pictures were decoded before: then `opened` only maps them."""
    return (cache_root() / "pictures" / f"{_key(files, side, decoder(name))}.npy").exists()


def _key(files: Files, side: int, by: Decoder) -> str:
    if isinstance(files, EncodedFiles):
        pictures = files.key or files.digest
    else:
        pictures = digest_of(content_of(files, place) for place in range(len(files)))
    decides = {"format": 2, "pictures": pictures, "side": side, "interpolation": INTERPOLATION}
    return identity_of(decides | {"decoder": by.name, "version": by.version})


def _too_large(path: Path, size: int) -> str:
    """Why pixels of so many bytes are not to be stored; empty where they are."""
    limit = cache_limit()
    if limit is not None and size > limit:
        return f"{size_in_words(size)} decoded, and FARSHIFT_CACHE_LIMIT is {size_in_words(limit)}"
    there = next(folder for folder in path.parents if folder.exists())
    free = shutil.disk_usage(there).free
    return f"{size_in_words(size)} decoded, and the disk has {size_in_words(free)} left" if size > free else ""


def _write(target: Path, files: Files, side: int, by: Decoder) -> None:
    total, done = len(files), 0
    with target.open("wb") as out:
        header = {"descr": "|u1", "fortran_order": False, "shape": (total, side, side, 3)}
        np.lib.format.write_array_header_1_0(out, header)
        for piece in decoded_pieces(files, side, by):
            out.write(piece.data)
            done += len(piece)
            if total > _TOLD_FROM:
                advance("decoding pictures", done, total)


def _mapped(path: Path) -> NDArray[np.uint8]:
    found: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False)
    return found
