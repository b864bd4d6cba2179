"""Checksums of a stored file's blocks, and when they are compared with the file.

A disk, a cable or a copy may change bytes and leave a file's size and times as they were. So a marker has the CRC-32 of
each block of 4 MiB, and a file is compared with them when a process first opens it: CRC-32 finds every burst of at most
32 bits, and misses one of 2^32 other changes of a block. The cache is defended against disks, not against people: who
may write a file may write its marker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args
from zlib import crc32

from ...core.errors import FarshiftError

BLOCK = 4 * 2**20
"""Bytes that have a checksum together."""

LARGE = 8 * 2**30
"""Bytes from which on a file is compared by the first process of a day, not by each: that would take minutes."""

Verify = Literal["always", "open", "never"]
WAYS: tuple[Verify, ...] = get_args(Verify)
"""When stored files are compared with their checksums: whenever they are opened, when a process first opens them, or
only where size, time or inode are not those noted."""

_THREADS = 4
_ALONE = 16
"""Blocks that one thread reads alone: less would not pay for starting others."""

_way: ContextVar[Verify | None] = ContextVar("when stored files are compared with their checksums", default=None)


def verify_when() -> Verify:
    """One of `WAYS`: that of the innermost `verifying`, else of `FARSHIFT_VERIFY`, else `open`."""
    return _way.get() or _known(os.environ.get("FARSHIFT_VERIFY", "").strip() or "open", "FARSHIFT_VERIFY")


@contextmanager
def verifying(way: Verify | None) -> Iterator[None]:
    """Compare what is opened while the context lasts in this way; as before where `way` is None. `FarshiftError` for
    what is no way."""
    token = _way.set(_way.get() if way is None else _known(way, "verify"))
    try:
        yield
    finally:
        _way.reset(token)


def _known(way: str, what: str) -> Verify:
    for known in WAYS:
        if way == known:
            return known
    raise FarshiftError(f"{what}: {way!r} is none of {', '.join(WAYS)}")


def digests(path: Path) -> tuple[str, list[int]]:
    """A file's sha256 and the CRC-32 of each of its blocks, by reading it once."""
    whole, each = sha256(), []
    for block in _blocks(path, 0, _count(path)):
        whole.update(block)
        each.append(crc32(block))
    return whole.hexdigest(), each


def fits(path: Path, expected: Sequence[int]) -> bool:
    """Whether a file's blocks have these CRC-32s; large files are read by several threads."""
    count = len(expected)
    if _count(path) != count:
        return False

    def alike(start: int) -> bool:
        stop = min(start + _ALONE, count)
        return [crc32(block) for block in _blocks(path, start, stop)] == list(expected[start:stop])

    starts = range(0, count, _ALONE)
    if len(starts) < 2:
        return all(map(alike, starts))
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as threads:
        return all(threads.map(alike, starts))


def _count(path: Path) -> int:
    return -(-path.stat().st_size // BLOCK)


def _blocks(path: Path, start: int, stop: int) -> Iterator[memoryview]:
    """Some blocks of a file, one after the other in the same memory."""
    room = memoryview(bytearray(min(BLOCK, path.stat().st_size)))
    with path.open("rb", buffering=0) as file:
        file.seek(start * BLOCK)
        for _ in range(start, stop):
            held = 0
            while held < len(room) and (got := file.readinto(room[held:])):
                held += got
            yield room[:held]
