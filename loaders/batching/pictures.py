"""Encoded pictures as pixels: decoded and resized on all cores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...core.errors import first_line
from ..decoders import DEFAULT, Decoder, decoder
from .encoded import BadPicture
from .encoded_files import EncodedFiles

if TYPE_CHECKING:
    import pyarrow as pa

Files: TypeAlias = "Sequence[bytes] | NDArray[Any] | pa.Array | EncodedFiles"
"""The contents of picture files: bytes in a list or an object array, an Arrow array of binary values, or files that lie
in a mapped one."""

_AT_ONCE = 16
"""Pictures of one job of a thread."""

_PIECE_BYTES = 32 * 2**20
"""Of the pixels that are handed on at once: big writes make files that are read quickly."""


def decoded(files: Files, side: int, name: str = DEFAULT) -> NDArray[np.uint8]:
    """The pixels of pictures (JPEG, PNG, WebP, TIFF ..) by the decoder `name`, as RGB, shape (n, side, side, 3).

    Raises `BadPicture` with the place of a picture that cannot be decoded.
    """
    pixels = np.empty((len(files), side, side, 3), np.uint8)
    start = 0
    for piece in decoded_pieces(files, side, decoder(name)):
        pixels[start : start + len(piece)] = piece
        start += len(piece)
    return pixels


def decoded_pieces(files: Files, side: int, by: Decoder) -> Iterator[NDArray[np.uint8]]:
    """The pixels of pictures in order, some (m, side, side, 3) at a time: while a piece is used, threads decode the
    next. A piece is valid until the next is asked for."""
    rows = max(1, _PIECE_BYTES // (side * side * 3))
    starts = range(0, len(files), rows)
    buffers = [np.empty((min(rows, len(files)), side, side, 3), np.uint8) for _ in starts[:2]]

    def decode(first: int, start: int, stop: int, pixels: NDArray[np.uint8]) -> None:
        for place in range(start, stop):
            pixels[place - first] = _one(files, place, side, by)

    def decode_held(held: Sequence[bytes | memoryview], place: int, start: int, pixels: NDArray[np.uint8]) -> None:
        for number, content in enumerate(held):
            pixels[start + number] = _decoded(content, place + number, len(files), side, by)

    def begin(pool: ThreadPoolExecutor, number: int) -> list[Future[None]]:
        first = starts[number]
        last = min(first + rows, len(files))
        if isinstance(files, EncodedFiles) and files.key:  # they lie elsewhere: read together
            held = files.contents(np.arange(first, last))
            some = range(0, last - first, _AT_ONCE)
            return [
                pool.submit(decode_held, held[start : start + _AT_ONCE], first + start, start, buffers[number % 2])
                for start in some
            ]
        jobs = range(first, last, _AT_ONCE)
        pixels = buffers[number % 2]
        return [pool.submit(decode, first, start, min(start + _AT_ONCE, last), pixels) for start in jobs]

    if len(files) <= _AT_ONCE:  # threads would take longer to begin
        for number, first in enumerate(starts):
            decode(first, first, min(first + rows, len(files)), buffers[number % 2])
            yield buffers[number % 2][: len(files) - first]
        return
    pool = ThreadPoolExecutor(os.cpu_count() or 1)  # a decoder frees the interpreter's lock
    try:
        ahead = begin(pool, 0)
        for number, first in enumerate(starts):
            now = ahead
            ahead = begin(pool, number + 1) if number + 1 < len(starts) else []
            for job in now:
                job.result()
            yield buffers[number % 2][: min(rows, len(files) - first)]
    finally:
        pool.shutdown(cancel_futures=True)


def readable(files: Files, name: str = DEFAULT) -> NDArray[np.bool_]:
    """Which pictures can be decoded, (n,)."""
    by, found = decoder(name), np.ones(len(files), bool)
    for place in range(len(files)):
        try:
            _one(files, place, 1, by)
        except BadPicture:
            found[place] = False
    return found


def content_of(files: Files, place: int) -> bytes | memoryview:
    """One file's content; of Arrow data, without a copy."""
    if isinstance(files, EncodedFiles):
        return files.content(place)
    held = files[place]
    return held if isinstance(held, bytes) else memoryview(held.as_buffer())


def _one(files: Files, place: int, side: int, by: Decoder) -> NDArray[np.uint8]:
    return _decoded(content_of(files, place), place, len(files), side, by)


def _decoded(content: bytes | memoryview, place: int, count: int, side: int, by: Decoder) -> NDArray[np.uint8]:
    try:
        return by.decode(content, side)
    except MemoryError:  # says nothing of the picture
        raise
    except Exception as error:  # a decoder meets anything, and raises anything
        raise BadPicture.at(place, count, first_line(error)) from error
