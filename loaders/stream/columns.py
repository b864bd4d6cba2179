"""Columns of a streamed part in place of local ones: rows are read and verified on demand, so that training can use
images of shards that do not fit on the disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from hashlib import blake2b
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError
from ...splits.schema import Field
from ..batching.encoded import EncodedFiles
from .part import StreamedPart

if TYPE_CHECKING:
    import pyarrow as pa

THREADS = 4
"""The number of threads that read the rows of one step."""

_AT_ONCE = 256
"""The number of rows read at once in a sequential pass."""


def find_streamed_inputs(part: StreamedPart, names: Iterable[str]) -> dict[str, StreamedFiles | StreamedPixels]:
    """Return the named columns as columns that are read on demand. Raises `FarshiftError` for a column that is neither
    encoded files nor a uint8 tensor."""
    inputs: dict[str, StreamedFiles | StreamedPixels] = {}
    for name in names:
        field = part.schema[name]
        if not is_streamed(field):
            raise FarshiftError(f"{part!r}: the column {name!r} is {field.type}: only images and audio can be streamed")
        inputs[name] = (StreamedFiles if field.item == "bytes" else StreamedPixels)(part, name)
    return inputs


def is_streamed(field: Field) -> bool:
    """Whether a field can be read on demand: encoded files, and uint8 tensors."""
    return field.item == "bytes" or (field.item == "uint8" and bool(field.shape))


class StreamedFiles(EncodedFiles):
    """Encoded files of a streamed part."""

    def __init__(self, part: StreamedPart, name: str) -> None:
        self.part, self.name = part, name
        self.places = np.arange(len(part))

    def content(self, index: int) -> memoryview:
        return memoryview(self.contents([index])[0])

    def contents(self, places: Sequence[int] | NDArray[np.int64]) -> list[bytes | memoryview]:
        if not len(places):
            return []
        values = _read_column(self.part, self.places[np.asarray(places, np.int64)], self.name)
        return [memoryview(value.as_buffer()) for value in values]

    @property
    def key(self) -> str:
        return _make_key(self.part.select(self.places), self.name)

    def _some(self, places: NDArray[np.int64]) -> StreamedFiles:
        files = StreamedFiles(self.part, self.name)
        files.places = places
        return files

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self), _AT_ONCE):
            yield from map(bytes, self.contents(np.arange(start, min(start + _AT_ONCE, len(self)))))


class StreamedPixels:
    """A uint8 tensor column of a streamed part, (n, ..): `Pixels` that are read on demand."""

    dtype = np.dtype(np.uint8)

    def __init__(self, part: StreamedPart, name: str) -> None:
        self.part, self.name = part, name
        self.shape = (len(part), *part.schema[name].shape)
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return len(self.part)

    @cached_property
    def key(self) -> str:
        return _make_key(self.part, self.name)

    def take(self, rows: NDArray[np.int64], out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        pixels = np.empty((len(rows), *self.shape[1:]), np.uint8) if out is None else out
        if len(rows):
            pixels[:] = _read_column(self.part, rows, self.name).flatten().to_numpy().reshape(pixels.shape)
        return pixels

    def __getitem__(self, rows: Any) -> NDArray[np.uint8]:
        return self.take(np.arange(len(self))[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.uint8]:
        return self.take(np.arange(len(self)))


def _make_key(part: StreamedPart, name: str) -> str:
    """Identify a column's content: by the manifest, against which every row is verified, and the selected rows."""
    rows = blake2b(part.row_ids.tobytes(), digest_size=16).hexdigest()
    return f"{part.identity}/{part.name}/{name}/{rows}"


def _read_column(part: StreamedPart, places: NDArray[np.int64], name: str) -> pa.Array:
    """Read a column's values at some positions, possibly repeated; each is read once, and all are verified."""
    import pyarrow as pa

    rows, back = np.unique(places, return_inverse=True)
    pieces = np.array_split(rows, THREADS if len(rows) >= 2 * THREADS else 1)
    cancel = Event()

    def read_piece(some: NDArray[np.int64]) -> pa.ChunkedArray:
        return part.read_rows(some, (name,), cancel)[name]

    with ThreadPoolExecutor(len(pieces)) as threads:
        try:
            columns = list(threads.map(read_piece, pieces))
        except BaseException:
            cancel.set()
            raise
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.chunked_array(chunks, chunks[0].type).combine_chunks().take(back)
