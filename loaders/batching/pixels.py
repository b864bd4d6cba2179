"""The pixels of many images, read in pieces: decoded once into the cache, then memory-mapped.

A cache entry (`images/<key>.npy`) has the pixels of some images in order. Its key is made from a digest of the
images' files, the side, the interpolation, and the decoder with its version, so each decoder version has its own
entries. Images that do not fit into the cache are decoded on each read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

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
from .images import Files, decode_images, iterate_decoded, read_contents

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


class ArrayPixels:
    """Images (n, ..) uint8 in memory, or in a memory-mapped file: those of `array` at `places`, by default all. Used
    like an array: an integer index returns an image; a slice, mask or index array those images, still unread;
    `numpy.asarray` reads all of them. known: their key, if known; else it is a digest of their bytes."""

    dtype = np.dtype(np.uint8)

    def __init__(self, array: NDArray[np.uint8], places: Rows | None = None, known: str = "") -> None:
        self.array, self.places = array, places
        self.shape: tuple[int, ...] = (len(array if places is None else places), *array.shape[1:])
        self.ndim = len(self.shape)
        if known:
            self.key = known

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: Rows, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        """Return the images at these positions, in new memory or in `out`."""
        return np.take(self.array, rows if self.places is None else self.places[rows], axis=0, mode="clip", out=out)

    def __getitem__(self, rows: Any) -> Any:
        places = (np.arange(len(self)) if self.places is None else self.places)[rows]
        return self.array[places].copy() if isinstance(rows, int | np.integer) else ArrayPixels(self.array, places)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.uint8]:
        return self.take(np.arange(len(self)))

    @cached_property
    def key(self) -> str:
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
            pixels = decode_images(read_contents(self.files, rows), self.side, self.by.name)
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
    if isinstance(pixels, ArrayPixels) and pixels.places is None:
        return pixels.array
    return pixels.take(np.arange(pixels.shape[0]))


def open_pixels(files: Files, side: int, name: str = DEFAULT) -> Pixels:
    """Open the pixels of encoded images, (n, side, side, 3), by the decoder `name`: memory-mapped from the cache, into
    which they are decoded first if needed.

    If they do not fit (the cache's limit, the disk) or the cache is not writable, a message says so, and they are
    decoded on each read. Raises `BadImage` for an image that cannot be decoded; then nothing is cached."""
    by = load_decoder(name)
    key = _compute_key(files, side, by)
    path, size = get_cache_root() / "images" / f"{key}.npy", len(files) * side * side * 3
    if not len(files):
        return ArrayPixels(np.empty((0, side, side, 3), np.uint8), known=key)
    why = "" if path.exists() else _explain_too_large(path, size)
    if not why:
        try:
            mapped = load_or_write(
                path,
                lambda target: _write_pixels(target, files, side, by),
                lambda stored: np.load(stored, mmap_mode="r", allow_pickle=False),
            )
            return ArrayPixels(mapped, known=key)
        except BadData:
            raise
        except FarshiftError as error:
            why = str(error)
    if len(files) > _TOLD_FROM:
        log_message(f"{len(files):,} images are decoded on each read: {why}")
    return EncodedPixels(files, side, by, key)


def _compute_key(files: Files, side: int, by: Decoder) -> str:
    images = files.key if isinstance(files, EncodedFiles) else digest_contents(iter(files))
    decides = {"format": 2, "pictures": images, "side": side, "interpolation": "bilinear"}
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
