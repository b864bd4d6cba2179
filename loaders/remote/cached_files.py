"""A remote file whose bytes are asked for once: what was received stays in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Condition, Event
from typing import Any

from . import File
from .folder import FolderFile

ALONG = 1 << 14
"""Bytes that are here and lie between bytes that are not: so few are fetched along with them, for less than one more
request costs."""

SHARE = 0.75
"""Of the memory given, that files may take which are kept whole: the rest is for the rows read ahead."""


def cache_in_memory(files: Iterable[File], memory: int) -> tuple[tuple[File, ...], int]:
    """The files, kept in memory where all of them together leave room for rows, and the memory that is left for rows.

    Files of a folder are left alone: the system keeps them."""
    every = tuple(files)
    size = sum(file.size for file in every if not isinstance(file, FolderFile))
    if not size or size > SHARE * memory:
        return every, memory
    return tuple(file if isinstance(file, FolderFile) else CachedFile(file) for file in every), memory - size


@dataclass
class _ReceivedBytes:
    """The bytes of a file that are here: `content` holds those in `spans`, sorted, apart from each other; those in
    `coming` are being read by some thread."""

    content: bytearray
    spans: list[tuple[int, int]] = field(default_factory=list)
    coming: list[tuple[int, int]] = field(default_factory=list)
    changed: Condition = field(default_factory=Condition)


@dataclass
class CachedFile:
    """`file`, what was read of which stays here: no byte is read twice, but for up to `along` between others. Threads
    may read it together; a copy in another process begins with nothing."""

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
            return self.file.read(start, stop, cancel)  # which says what is wrong
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
                    received.changed.wait(0.1)  # others read it: they say when it is here, or failed
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
        """Ask for every byte anew: some that are here were found to be wrong."""
        self._received = _ReceivedBytes(bytearray(self.size))


def forget_files(files: Iterable[File]) -> None:
    """Have those files that are kept ask for their bytes anew."""
    for file in files:
        if isinstance(file, CachedFile):
            file.forget()


def merge_near_spans(spans: list[tuple[int, int]], along: int) -> list[tuple[int, int]]:
    """The same spans, those in one that have at most `along` bytes between them."""
    merged_spans = spans[:1]
    for first, last in spans[1:]:
        if first - merged_spans[-1][1] <= along:
            merged_spans[-1] = merged_spans[-1][0], last
        else:
            merged_spans.append((first, last))
    return merged_spans


def subtract_spans(start: int, stop: int, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of [start, stop) without the spans, which are sorted."""
    gaps = []
    for first, last in spans:
        if last <= start or first >= stop:
            continue
        if first > start:
            gaps.append((start, first))
        start = max(start, last)
    return [*gaps, (start, stop)] if start < stop else gaps


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes as few spans, sorted."""
    merged_spans: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged_spans and first <= merged_spans[-1][1]:
            merged_spans[-1] = merged_spans[-1][0], max(merged_spans[-1][1], last)
        elif first < last:
            merged_spans.append((first, last))
    return merged_spans
