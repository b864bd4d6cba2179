"""A file read by ranges, as a Python file object for readers of formats."""

from __future__ import annotations

import io
from collections.abc import Iterable
from threading import Event

from . import File


class RangeFile(io.RawIOBase):
    """`file`, of which some ranges are in memory; others are read on demand."""

    def __init__(self, file: File, cancel: Event, ahead: Iterable[tuple[int, int]] = ()) -> None:
        super().__init__()
        self._file, self._cancel, self._at = file, cancel, 0
        self._cached_ranges = [(start, memoryview(file.read(start, stop, cancel))) for start, stop in ahead]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def size(self) -> int:
        return self._file.size

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        stop = min(self._at + len(buffer), self._file.size)
        if stop <= self._at:
            return 0
        content = self._between(self._at, stop)
        buffer[: len(content)] = content
        self._at = stop
        return len(content)

    def _between(self, start: int, stop: int) -> memoryview:
        for first, content in self._cached_ranges:
            if first <= start and stop <= first + len(content):
                return content[start - first : stop - first]
        return memoryview(self._file.read(start, stop, self._cancel))
