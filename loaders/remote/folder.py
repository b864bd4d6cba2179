"""A local file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from ...core.errors import BadData, Unavailable


@dataclass(frozen=True)
class FolderFile:
    """`stamp` is the size, modification time and inode when it was opened."""

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
        if not 0 <= start <= stop <= self.size:
            raise BadData(f"{self.path} has {self.size} bytes, but bytes {start} to {stop} are needed: it is truncated")
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
