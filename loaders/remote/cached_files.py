"""A remote file whose received bytes stay in memory, so that each is requested once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Condition, Event
from typing import Any

from . import File
from .folder import FolderFile

ALONG = 1 << 14
"""Up to this many cached bytes between missing ones are fetched again, as that costs less than another request."""

SHARE = 0.75
"""The fraction of the memory for files that are cached whole; the rest is for prefetched rows."""


def cache_in_memory(files: Iterable[File], memory: int) -> tuple[tuple[File, ...], int]:
    """Return the files, cached in memory if all of them leave enough space for rows, and the memory left for rows.

    Local files are not cached, since the operating system does that."""
    every = tuple(files)
    size = sum(file.size for file in every if not isinstance(file, FolderFile))
    if not size or size > SHARE * memory:
        return every, memory
    return tuple(file if isinstance(file, FolderFile) else CachedFile(file) for file in every), memory - size


@dataclass
class _ReceivedBytes:
    """The received bytes of a file: `content` has those in `spans`, which are sorted and disjoint; those in `coming`
    are being read by a thread."""

    content: bytearray
    spans: list[tuple[int, int]] = field(default_factory=list)
    coming: list[tuple[int, int]] = field(default_factory=list)
    changed: Condition = field(default_factory=Condition)


@dataclass
class CachedFile:
    """`file` with a memory cache: no byte is read twice, except up to `along` bytes between others. Thread-safe; a copy
    in another process starts empty."""

    file: File
    along: int = ALONG
    _received: _ReceivedBytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.forget()

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def size(self) -> int:
        return self.file.size

    @property
    def identity(self) -> str | None:
        return self.file.identity

    def __getstate__(self) -> dict[str, Any]:
        return {"file": self.file, "along": self.along}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.forget()

    def read(self, start: int, stop: int, cancel: Event) -> bytes:
        if not 0 <= start <= stop <= self.size:
            return self.file.read(start, stop, cancel)  # raises the error
        received = self._received
        while True:
            with received.changed:
                missing = subtract_spans(start, stop, received.spans)
                if not missing:
                    return bytes(received.content[start:stop])
                free_gaps = [
                    piece
                    for gap in merge_near_spans(missing, self.along)
                    for piece in subtract_spans(*gap, sorted(received.coming))
                ]
                if not free_gaps:
                    received.changed.wait(0.1)  # other threads read it, and notify when they are done or failed
                    continue
                first, last = free_gaps[0]
                received.coming.append((first, last))
            try:
                content = self.file.read(first, last, cancel)
            except BaseException:
                with received.changed:
                    received.coming.remove((first, last))
                    received.changed.notify_all()
                raise
            with received.changed:
                received.content[first:last] = content
                received.coming.remove((first, last))
                received.spans = merge_spans([*received.spans, (first, last)])
                received.changed.notify_all()

    def forget(self) -> None:
        """Discard all cached bytes, after an error was found in them."""
        self._received = _ReceivedBytes(bytearray(self.size))


def forget_files(files: Iterable[File]) -> None:
    """Discard the cached bytes of those files that are cached."""
    for file in files:
        if isinstance(file, CachedFile):
            file.forget()


def merge_near_spans(spans: list[tuple[int, int]], along: int) -> list[tuple[int, int]]:
    """Merge spans with at most `along` bytes between them."""
    merged_spans = spans[:1]
    for first, last in spans[1:]:
        if first - merged_spans[-1][1] <= along:
            merged_spans[-1] = merged_spans[-1][0], last
        else:
            merged_spans.append((first, last))
    return merged_spans


def subtract_spans(start: int, stop: int, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return [start, stop) without the spans, which are sorted."""
    gaps = []
    for first, last in spans:
        if last <= start or first >= stop:
            continue
        if first > start:
            gaps.append((start, first))
        start = max(start, last)
    return [*gaps, (start, stop)] if start < stop else gaps


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same bytes as sorted, disjoint spans."""
    merged_spans: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged_spans and first <= merged_spans[-1][1]:
            merged_spans[-1] = merged_spans[-1][0], max(merged_spans[-1][1], last)
        elif first < last:
            merged_spans.append((first, last))
    return merged_spans
