"""A file of a local folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from ...core.errors import BadData, Unavailable


@dataclass(frozen=True)
class FolderFile:
    """`stamp` is the size, time of change and inode when it was opened."""

    path: Path
    stamp: tuple[int, int, int]

    @classmethod
    def open(cls, path: Path) -> FolderFile:
        """`Unavailable` where the file is not there or may not be read."""
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
            raise BadData(
                f"{self.path} has {self.size} bytes, and bytes {start} to {stop} were asked for: it was cut off"
            )
        try:
            with self.path.open("rb") as file:
                if _make_stamp(os.fstat(file.fileno())) != self.stamp:
                    raise BadData(f"{self.path} changed since it was opened: open the stream anew")
                file.seek(start)
                content = file.read(stop - start)
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be read: {error.strerror or error}") from error
        if len(content) != stop - start:
            raise BadData(f"{self.path} was cut off as it was read: open the stream anew")
        return content


def _make_stamp(state: os.stat_result) -> tuple[int, int, int]:
    return state.st_size, state.st_mtime_ns, state.st_ino
