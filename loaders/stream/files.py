"""Files that are read by byte ranges, in a folder or on a web server. None keeps a connection or a thread between
calls, so all can be pickled."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, Unavailable
from ...core.retry import TransientError, call_with_retries
from ..files.http import read_tag, request_file

if TYPE_CHECKING:
    import httpx2

GAP = 1 << 17
"""The maximum gap in bytes between rows of one range: about what a connection transfers in the time of another
request."""

LONGEST = 1 << 23
"""The maximum size of a request in bytes, unless a single row is longer: the most that a broken connection loses."""

BLOCK = 1 << 16
"""The size in bytes of the blocks of a cached file; fewer would often cost more requests than they save bytes."""

SHARE = 0.75
"""The fraction of the memory for files that are cached whole; the rest is for prefetched rows."""

_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")


class Cancelled(Exception):
    """The reader was closed during a read, whose result is not needed."""


class File(Protocol):
    """A file of `size` bytes. name: its path or address, for messages. identity: identifies the content among later
    contents of the same address; None if that is not possible."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def identity(self) -> str | None: ...

    def read(self, start: int, stop: int, cancel: Event) -> bytes:
        """Return all bytes of [start, stop). Raises `Unavailable` if they are not available, `BadData` if the file has
        changed since it was opened, `Cancelled` if `cancel` was set meanwhile."""
        ...


def read_whole_file(file: File) -> bytes:
    """Read a whole file in pieces."""
    cancel = Event()
    return b"".join(file.read(start, min(start + LONGEST, file.size), cancel) for start in range(0, file.size, LONGEST))


def _check_bounds(file: File, start: int, stop: int) -> None:
    if not 0 <= start <= stop <= file.size:
        raise BadData(f"{file.name} has {file.size} bytes, but bytes {start} to {stop} are needed: it is truncated")


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
        _check_bounds(self, start, stop)
        try:
            with self.path.open("rb") as file:
                changed = _make_stamp(os.fstat(file.fileno())) != self.stamp
                file.seek(start)
                content = file.read(stop - start)
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be read: {error.strerror or error}") from error
        if changed or len(content) != stop - start:
            raise BadData(f"{self.path} changed since it was opened: open the stream again")
        return content


def _make_stamp(state: os.stat_result) -> tuple[int, int, int]:
    return state.st_size, state.st_mtime_ns, state.st_ino


@dataclass
class HttpFile:
    """A file at `url`, of which ranges are requested (RFC 9110, section 14). `tag` is its entity tag, or else its
    modification time, in the first response; later responses have to have the same. Transient errors are retried.
    `content` identifies the content if the address is immutable."""

    url: str
    size: int
    tag: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: str | None = None
    _moved: str | None = field(default=None, repr=False, compare=False)
    """The address to which the last request was redirected: servers have rate limits, so the next one begins there."""

    @classmethod
    def open(cls, url: str) -> HttpFile:
        """Open the file at `url`, with the length and tag that the server reports. Raises `Unavailable` if it reports
        no length."""

        def ask() -> HttpFile:
            # Request one byte instead of HEAD: some servers respond to HEAD differently from GET, or not at all.
            with request_file(url, {"Range": "bytes=0-0"}) as answer:
                match = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
                length = match[3] if match else answer.headers.get("Content-Length", "")
                if not re.fullmatch("[0-9]{1,18}", length):
                    raise Unavailable(
                        f"{url}: the server does not report the size of the file: download it and stream from its "
                        "folder"
                    )
                return cls(url, int(length), read_tag(answer))

        return call_with_retries(ask, f"{url} could not be opened")

    @property
    def name(self) -> str:
        return self.url

    @property
    def identity(self) -> str | None:
        if self.content is not None or self.tag is None:
            return self.content
        return f"{self.url} {self.tag} {self.size}"

    def read(self, start: int, stop: int, cancel: Event) -> bytes:
        _check_bounds(self, start, stop)

        def wait(seconds: float) -> None:
            if cancel.wait(seconds):
                raise Cancelled

        if start == stop:
            return b""
        what = f"{self.url}: bytes {start} to {stop} could not be read"
        return call_with_retries(lambda: self._read_once(start, stop, cancel), what, wait)

    def _read_once(self, start: int, stop: int, cancel: Event) -> bytes:
        moved, got = self._moved, bytearray()
        headers = {**({} if moved else self.headers), "Range": f"bytes={start}-{stop - 1}"}
        try:
            with request_file(moved or self.url, headers) as answer:
                self._check(answer, start)
                if answer.history:
                    self._moved = str(answer.url)
                # A response has to be read to its end for its connection to be reused.
                for piece in answer.iter_raw():
                    got += piece
                    if cancel.is_set():
                        raise Cancelled
                    if len(got) > stop - start:
                        break
        except Unavailable as error:
            if moved is None:
                raise
            self._moved = None
            raise TransientError(f"its redirected address was refused: {error}", pause=0.0) from error
        if len(got) < stop - start:
            raise TransientError(f"the response ended at byte {start + len(got)}")
        return bytes(got[: stop - start])

    def _check(self, answer: httpx2.Response, start: int) -> None:
        """Raise `BadData` if the file has changed, `Unavailable` if the server does not support ranges,
        `TransientError` if the response is not of the requested range."""
        changed, tag = f"{self.url} changed since it was opened", read_tag(answer)
        if self.tag not in (None, tag):
            raise BadData(f"{changed} (entity tag {tag}, was {self.tag}): open it again")
        self.tag = tag
        if answer.status_code == 200:  # the whole file
            if start:
                raise Unavailable(
                    f"{self.url}: the server does not support range requests, so single rows cannot be read: "
                    "download the files and stream from their folder"
                )
            return
        content_range = answer.headers.get("Content-Range", "none")
        match = _CONTENT_RANGE.fullmatch(content_range)
        if match is None or int(match[1]) != start:
            raise TransientError(f"bytes from {start} were requested, but Content-Range is {content_range!r}")
        if match[3] not in ("*", str(self.size)):
            raise BadData(f"{changed} ({match[3]} bytes, was {self.size}): open it again")


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
        self._lock = Lock()
        self.forget()

    def __reduce__(self) -> tuple[Any, ...]:
        return CachedFile, (self.file,)

    def forget(self) -> None:
        """Discard all cached bytes, after an error was found in them."""
        self._content, self._present = bytearray(self.size), np.zeros(-(-self.size // BLOCK), bool)

    def read(self, start: int, stop: int, cancel: Event) -> bytes:
        _check_bounds(self, start, stop)
        with self._lock:
            first = start // BLOCK
            missing = first + np.flatnonzero(~self._present[first : -(-stop // BLOCK)])
            for run in np.split(missing, np.flatnonzero(np.diff(missing) != 1) + 1):
                if len(run):
                    begin, end = int(run[0]) * BLOCK, min((int(run[-1]) + 1) * BLOCK, self.size)
                    self._content[begin:end] = self.file.read(begin, end, cancel)
                    self._present[run] = True
            return bytes(self._content[start:stop])


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
