"""Files that are read by byte ranges. None keeps a connection or a thread between calls, so all can be pickled."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Event
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, Unavailable

GAP = 1 << 17
"""The maximum gap in bytes between rows of one range: about what a connection transfers in the time of another
request."""

LONGEST = 1 << 23
"""The maximum size of a request in bytes, unless a single row is longer: the most that a broken connection loses."""

BLOCK = 1 << 16
"""The size in bytes of the blocks of a cached file; fewer would often cost more requests than they save bytes."""

SHARE = 0.75
"""The fraction of the memory for files that are cached whole; the rest is for prefetched rows."""

_MISSING, _COMING, _PRESENT = range(3)


class Cancelled(Exception):
    """The reader was closed during a read, whose result is not needed."""


class File(Protocol):
    """A file that is read by byte ranges."""

    @property
    def name(self) -> str:
        """Its path or address, for messages."""
        ...

    @property
    def size(self) -> int:
        """Its size in bytes."""
        ...

    @property
    def identity(self) -> str | None:
        """Identifies the content among later contents of the same address; None if that is not possible."""
        ...

    def read(self, start: int, stop: int, cancel: Event) -> bytes:
        """Return all bytes of [start, stop). Raises `Unavailable` if they are not available, `BadData` if the file has
        changed since it was opened, `Cancelled` if `cancel` was set meanwhile."""
        ...


def read_whole_file(file: File) -> bytes:
    """Read a whole file in pieces."""
    cancel = Event()
    return b"".join(file.read(start, min(start + LONGEST, file.size), cancel) for start in range(0, file.size, LONGEST))


@dataclass(frozen=True)
class FolderFile:
    """A local file. `stamp` is the size, modification time and inode when it was opened."""

    path: Path
    stamp: tuple[int, int, int]

    @classmethod
    def open(cls, path: Path) -> FolderFile:
        """Open a file. Raises `Unavailable` if it does not exist or is not readable."""
        try:
            return cls(path, _make_stamp(path.stat()))
        except OSError as error:
            raise Unavailable(f"{path} cannot be read: {error.strerror or error}") from error

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def size(self) -> int:
        return self.stamp[0]

    @property
    def identity(self) -> str | None:
        return f"{self.path.resolve()} {self.stamp}"

    def read(self, start: int, stop: int, cancel: Event) -> bytes:
        check_bounds(self, start, stop)
        try:
            with self.path.open("rb") as file:
                if _make_stamp(os.fstat(file.fileno())) != self.stamp:
                    raise BadData(f"{self.path} changed since it was opened: open the stream again")
                file.seek(start)
                content = file.read(stop - start)
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be read: {error.strerror or error}") from error
        if len(content) != stop - start:
            raise BadData(f"{self.path} was truncated while being read: open the stream again")
        return content


def _make_stamp(state: os.stat_result) -> tuple[int, int, int]:
    return state.st_size, state.st_mtime_ns, state.st_ino


def check_bounds(file: File, start: int, stop: int) -> None:
    """Raise `BadData` if a file does not have the bytes [start, stop)."""
    if not 0 <= start <= stop <= file.size:
        raise BadData(f"{file.name} has {file.size} bytes, but bytes {start} to {stop} are needed: it is truncated")


def cache_in_memory(files: Iterable[File], memory: int) -> tuple[tuple[File, ...], int]:
    """Return the files, cached in memory if all of them leave enough space for rows, and the memory left for rows.

    Local files are not cached, since the operating system does that."""
    every = tuple(files)
    size = sum(file.size for file in every if not isinstance(file, FolderFile))
    if not size or size > SHARE * memory:
        return every, memory
    return tuple(file if isinstance(file, FolderFile) else CachedFile(file) for file in every), memory - size


class CachedFile:
    """`file` with a memory cache of its blocks, each of which is requested once. Thread-safe; a copy in another process
    starts empty."""

    def __init__(self, file: File) -> None:
        self.file, self.name, self.size, self.identity = file, file.name, file.size, file.identity
        self.forget()

    def __reduce__(self) -> tuple[Any, ...]:
        return CachedFile, (self.file,)

    def forget(self) -> None:
        """Discard all cached bytes, after an error was found in them."""
        self._cached = bytearray(self.size), np.full(-(-self.size // BLOCK), _MISSING, np.uint8), Condition()

    def read(self, start: int, stop: int, cancel: Event) -> bytes:
        check_bounds(self, start, stop)
        content, every_state, changed = self._cached
        first = start // BLOCK
        states = every_state[first : -(-stop // BLOCK)]
        while True:
            with changed:
                missing = np.flatnonzero(states == _MISSING)
                if not len(missing):
                    if (states == _PRESENT).all():
                        return bytes(content[start:stop])
                    changed.wait(0.1)  # other threads read the rest, and notify when they are done or failed
                    continue
                count = int(np.argmax(np.diff(missing, append=-1) != 1)) + 1
                blocks = slice(int(missing[0]), int(missing[0]) + count)
                states[blocks] = _COMING
            begin, end = (first + blocks.start) * BLOCK, min((first + blocks.stop) * BLOCK, self.size)
            state = _MISSING
            try:
                content[begin:end] = self.file.read(begin, end, cancel)
                state = _PRESENT
            finally:
                with changed:
                    states[blocks] = state
                    changed.notify_all()


def forget_files(files: Iterable[File]) -> None:
    """Discard the cached bytes of those files that are cached."""
    for file in files:
        if isinstance(file, CachedFile):
            file.forget()


class RangeFile(io.RawIOBase):
    """`file` as a Python file object for readers of formats: the ranges `ahead` are read at once, others on demand."""

    def __init__(self, file: File, cancel: Event, ahead: Iterable[tuple[int, int]] = ()) -> None:
        super().__init__()
        self._file, self._cancel, self._at = file, cancel, 0
        self._ahead = [(start, memoryview(file.read(start, stop, cancel))) for start, stop in ahead]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + (0, self._at, self._file.size)[whence])
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        start, stop = self._at, min(self._at + len(buffer), self._file.size)
        if stop <= start:
            return 0
        for first, content in self._ahead:
            if first <= start and stop <= first + len(content):
                buffer[: stop - start] = content[start - first : stop - first]
                break
        else:
            buffer[: stop - start] = self._file.read(start, stop, self._cancel)
        self._at = stop
        return stop - start


class Range(NamedTuple):
    """Bytes [start, stop) of a file, and the requested rows in them."""

    file: int
    start: int
    stop: int
    rows: NDArray[np.int64]


def coalesce_ranges(
    files: NDArray[np.int64], offsets: NDArray[np.int64], lengths: NDArray[np.int64]
) -> Iterator[Range]:
    """Return the ranges to read for rows at these positions (arrays of shape (rows,)), by file and offset; each row is
    in one, and near rows share one."""
    order = np.lexsort((offsets, files))
    first, start, stop, file = 0, 0, 0, -1
    for turn, (its_file, offset, length) in enumerate(
        zip(files[order].tolist(), offsets[order].tolist(), lengths[order].tolist(), strict=True)
    ):
        end = offset + length
        if its_file != file or offset > stop + GAP or max(stop, end) - start > LONGEST:
            if turn:
                yield Range(file, start, stop, order[first:turn])
            first, start, stop, file = turn, offset, end, its_file
        stop = max(stop, end)
    if len(order):
        yield Range(file, start, stop, order[first:])
