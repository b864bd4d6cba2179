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


def kept(files: Iterable[File], memory: int) -> tuple[tuple[File, ...], int]:
    """The files, kept in memory where all of them together leave room for rows, and the memory that is left for rows.

    Files of a folder are left alone: the system keeps them."""
    every = tuple(files)
    size = sum(file.size for file in every if not isinstance(file, FolderFile))
    if not size or size > SHARE * memory:
        return every, memory
    return tuple(file if isinstance(file, FolderFile) else KeptFile(file) for file in every), memory - size


@dataclass
class _Received:
    """The bytes of a file that are here: `content` holds those in `spans`, sorted, apart from each other; those in
    `coming` are being read by some thread."""

    content: bytearray
    spans: list[tuple[int, int]] = field(default_factory=list)
    coming: list[tuple[int, int]] = field(default_factory=list)
    changed: Condition = field(default_factory=Condition)


@dataclass
class KeptFile:
    """`file`, what was read of which stays here: no byte is read twice, but for up to `along` between others. Threads
    may read it together; a copy in another process begins with nothing."""

    file: File
    along: int = ALONG
    _held: _Received = field(init=False, repr=False, compare=False)

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

    def read(self, start: int, stop: int, halt: Event) -> bytes:
        if not 0 <= start <= stop <= self.size:
            return self.file.read(start, stop, halt)  # which says what is wrong
        held = self._held
        while True:
            with held.changed:
                missing = without(start, stop, held.spans)
                if not missing:
                    return bytes(held.content[start:stop])
                mine = [piece for gap in near(missing, self.along) for piece in without(*gap, sorted(held.coming))]
                if not mine:
                    held.changed.wait(0.1)  # others read it: they say when it is here, or failed
                    continue
                first, last = mine[0]
                held.coming.append((first, last))
            try:
                content = self.file.read(first, last, halt)
            except BaseException:
                with held.changed:
                    held.coming.remove((first, last))
                    held.changed.notify_all()
                raise
            with held.changed:
                held.content[first:last] = content
                held.coming.remove((first, last))
                held.spans = joined([*held.spans, (first, last)])
                held.changed.notify_all()

    def forget(self) -> None:
        """Ask for every byte anew: some that are here were found to be wrong."""
        self._held = _Received(bytearray(self.size))


def forget(files: Iterable[File]) -> None:
    """Have those files that are kept ask for their bytes anew."""
    for file in files:
        if isinstance(file, KeptFile):
            file.forget()


def near(spans: list[tuple[int, int]], along: int) -> list[tuple[int, int]]:
    """The same spans, those in one that have at most `along` bytes between them."""
    found = spans[:1]
    for first, last in spans[1:]:
        if first - found[-1][1] <= along:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found


def without(start: int, stop: int, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of [start, stop) without the spans, which are sorted."""
    found = []
    for first, last in spans:
        if last <= start or first >= stop:
            continue
        if first > start:
            found.append((start, first))
        start = max(start, last)
    return [*found, (start, stop)] if start < stop else found


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes as few spans, sorted."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], last)
        elif first < last:
            found.append((first, last))
    return found
