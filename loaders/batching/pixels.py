"""The pixels of many images, read in pieces: decoded once into the cache, then memory-mapped.

A cache entry (`images/<key>.npy`) has the pixels of some images in order. Its key is made from a digest of the
images' files, the side, the interpolation, and the decoder with its version, so each decoder version has its own
entries. Images that do not fit into the cache are decoded on each read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.canonical import compute_identity
from ...core.errors import BadData, FarshiftError
from ...core.files import get_cache_root
from ...core.progress import log_message, report_progress
from ..cache.entries import format_size, read_cache_limit
from ..cache.store import load_or_write
from ..decoders import DEFAULT, Decoder, load_decoder
from .encoded import BadImage, EncodedFiles, digest_contents
from .images import Files, decode_images, iterate_decoded, read_content, read_contents

if TYPE_CHECKING:
    import pyarrow as pa

INTERPOLATION = "bilinear"

_READ_BYTES = 32 * 2**20
_TOLD_FROM = 1024
"""The number of images from which on decoding is slow enough to report progress."""

Rows = NDArray[np.int64]


class Pixels(Protocol):
    """Images of one shape, uint8. `shape`: (n, ..). `key` identifies their content."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def key(self) -> str: ...

    def take(self, rows: Rows, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        """Return the images at these positions, in new memory or in `out`."""
        ...


@dataclass(frozen=True)
class ArrayPixels:
    """Pixels in memory, or memory-mapped from a file. known: their key, if known; else it is a digest of their
    bytes."""

    array: NDArray[np.uint8]
    known: str = ""

    @cached_property
    def key(self) -> str:
        if self.known:
            return self.known
        hasher = blake2b(repr(self.array.shape).encode(), digest_size=16)
        hasher.update(np.ascontiguousarray(self.array).data)
        return hasher.hexdigest()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def take(self, rows: Rows, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        return np.take(self.array, rows, axis=0, mode="clip", out=out)


class MappedPixels:
    """A column of pixels (n, ..) uint8 that stays in a memory-mapped Arrow file, used like an array: an integer index
    returns an image; a slice, mask or index array those images, still unread; `numpy.asarray` reads all of them."""

    dtype = np.dtype(np.uint8)

    def __init__(self, stored: pa.ChunkedArray, shape: Sequence[int], places: Rows) -> None:
        """stored: fixed-size lists, the images of `shape`. places: the indices of this column's images, in order."""
        self.stored, self.places = stored, places
        self.shape = (len(places), *shape)
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def _chunks(self) -> list[NDArray[np.uint8]]:
        return [chunk.flatten().to_numpy().reshape(-1, *self.shape[1:]) for chunk in self.stored.chunks]

    @cached_property
    def _starts(self) -> Rows:
        return np.cumsum([0, *map(len, self._chunks)])

    def take(self, rows: Rows, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        """Return the images at these positions, in new memory or in `out`."""
        places = self.places[rows]
        if len(self._chunks) == 1:
            return np.take(self._chunks[0], places, axis=0, mode="clip", out=out)
        pixels = np.empty((len(places), *self.shape[1:]), np.uint8) if out is None else out
        numbers = np.searchsorted(self._starts, places, "right") - 1
        for number in np.unique(numbers):
            here = numbers == number
            pixels[here] = self._chunks[number][places[here] - self._starts[number]]
        return pixels

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, int | np.integer):
            return self.take(np.array([np.arange(len(self))[rows]]))[0]
        return MappedPixels(self.stored, self.shape[1:], self.places[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.uint8]:
        return self.take(np.arange(len(self)))

    @cached_property
    def key(self) -> str:
        """A digest of the content, equal to that of `ArrayPixels` of the same images."""
        hasher = blake2b(repr(self.shape).encode(), digest_size=16)
        for piece in iterate_pieces(self):
            hasher.update(piece.data)
        return hasher.hexdigest()


@dataclass(frozen=True)
class EncodedPixels:
    """Images that are decoded on each read."""

    files: Files
    side: int
    by: Decoder
    key: str

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.files), self.side, self.side, 3)

    def take(self, rows: Rows, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        try:
            contents = [bytes(content) for content in read_contents(self.files, rows)]
            pixels = decode_images(contents, self.side, self.by.name)
        except BadImage as error:
            raise BadImage.at(int(rows[error.position]), len(self.files), error.why) from error
        if out is None:
            return pixels
        out[:] = pixels
        return out


def iterate_pieces(pixels: Pixels) -> Iterator[NDArray[np.uint8]]:
    """Yield all images in order, in pieces."""
    if isinstance(pixels, EncodedPixels):
        yield from iterate_decoded(pixels.files, pixels.side, pixels.by)
        return
    rows = pixels.shape[0]
    step = max(1, _READ_BYTES // max(1, int(np.prod(pixels.shape[1:]))))
    for start in range(0, rows, step):
        yield pixels.take(np.arange(start, min(start + step, rows)))


def read_all_pixels(pixels: Pixels) -> NDArray[np.uint8]:
    """Return all images: the memory map if there is one, else in memory."""
    return pixels.array if isinstance(pixels, ArrayPixels) else pixels.take(np.arange(pixels.shape[0]))


def open_pixels(files: Files, side: int, name: str = DEFAULT) -> Pixels:
    """Open the pixels of encoded images, (n, side, side, 3), by the decoder `name`: memory-mapped from the cache, into
    which they are decoded first if needed.

    If they do not fit (the cache's limit, the disk) or the cache is not writable, a message says so, and they are
    decoded on each read. Raises `BadImage` for an image that cannot be decoded; then nothing is cached."""
    by = load_decoder(name)
    key = _compute_key(files, side, by)
    path, size = get_cache_root() / "images" / f"{key}.npy", len(files) * side * side * 3
    if not len(files):
        return ArrayPixels(np.empty((0, side, side, 3), np.uint8), key)
    why = "" if path.exists() else _explain_too_large(path, size)
    if not why:
        try:
            return ArrayPixels(
                load_or_write(path, lambda target: _write_pixels(target, files, side, by), _map_pixels), key
            )
        except BadData:
            raise
        except FarshiftError as error:
            why = str(error)
    if len(files) > _TOLD_FROM:
        log_message(f"{len(files):,} images are decoded on each read: {why}")
    return EncodedPixels(files, side, by, key)


def _compute_key(files: Files, side: int, by: Decoder) -> str:
    if isinstance(files, EncodedFiles):
        images = files.key
    else:
        images = digest_contents(read_content(files, index) for index in range(len(files)))
    decides = {"format": 2, "pictures": images, "side": side, "interpolation": INTERPOLATION}
    return compute_identity(decides | {"decoder": by.name, "version": by.version})


def _explain_too_large(path: Path, size: int) -> str:
    """Why pixels of this size in bytes are not cached; empty if they are."""
    limit = read_cache_limit()
    if limit is not None and size > limit:
        return f"{format_size(size)} decoded, and FARSHIFT_CACHE_LIMIT is {format_size(limit)}"
    existing_folder = next(folder for folder in path.parents if folder.exists())
    free = shutil.disk_usage(existing_folder).free
    return f"{format_size(size)} decoded, and the disk has {format_size(free)} left" if size > free else ""


def _write_pixels(target: Path, files: Files, side: int, by: Decoder) -> None:
    total, done = len(files), 0
    with target.open("wb") as out:
        header = {"descr": "|u1", "fortran_order": False, "shape": (total, side, side, 3)}
        np.lib.format.write_array_header_1_0(out, header)
        for piece in iterate_decoded(files, side, by):
            out.write(piece.data)
            done += len(piece)
            if total > _TOLD_FROM:
                report_progress("decoding images", done, total)


def _map_pixels(path: Path) -> NDArray[np.uint8]:
    array: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array
