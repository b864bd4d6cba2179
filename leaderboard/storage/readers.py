"""Copies of a board, an export in a folder or behind a URL, read in the same way as the board itself."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any, Protocol

from ...core.errors import BadData
from ...core.files import write_atomically
from ...core.plugins import read_toml
from ...core.progress import say
from ...loaders.remote.http import HttpFile
from ..ledger import Record
from ..ledger.record import read_line
from ..validation.limits import SUBMISSION_BYTES
from .board_files import place_problem

LEDGER = "ledger.jsonl"
CARD = "board.toml"
LIMITS = {CARD: 1 << 16, LEDGER: 1 << 30}
"""The most bytes that are fetched for these files; for any other, as many as for a submission."""

MAX_FETCHED = 1 << 36
"""The most bytes that are fetched in all."""


class BoardReader(Protocol):
    """A board, or a copy of one. card: what board.toml says; folder: where its files lie once `file` gave them; whole:
    whether it must also have what is not public yet."""

    place: str
    folder: Path
    card: dict[str, Any]
    whole: bool

    def read(self) -> tuple[list[Record], list[str]]:
        """The records as they lie there, and what could not be read as one."""
        ...

    def file(self, path: str) -> Path | None:
        """A file that a record names, ready to be read; None where it is missing. `Unavailable` where a server does not
        give it, `BadData` where it is too large."""
        ...

    def strays(self, folders: set[str]) -> list[str]:
        """The files in these folders, as far as they can be listed."""
        ...


class ExportReader:
    """A folder that `farshift board export` wrote."""

    whole = False

    def __init__(self, path: Path) -> None:
        self.place, self.folder = str(path), path
        self.card = read_toml(path / CARD)

    def read(self) -> tuple[list[Record], list[str]]:
        return read_lines((self.folder / LEDGER).read_bytes())

    def file(self, path: str) -> Path | None:
        return plain_file(self.folder, path)

    def strays(self, folders: set[str]) -> list[str]:
        return files_in(self.folder, folders)


class UrlReader:
    """An export behind an http(s) address, fetched file by file into a temporary folder."""

    whole = False

    def __init__(self, url: str, folder: Path) -> None:
        self.place, self.url, self.folder = url, url.rstrip("/"), folder
        self._fetched = 0
        self._fetch(CARD)
        self.card = read_toml(folder / CARD)

    def read(self) -> tuple[list[Record], list[str]]:
        self._fetch(LEDGER)
        return read_lines((self.folder / LEDGER).read_bytes())

    def file(self, path: str) -> Path | None:
        if not place_problem(path) and not (self.folder / path).is_file():
            self._fetch(path)
        return plain_file(self.folder, path)

    def strays(self, folders: set[str]) -> list[str]:
        return []  # the files of a web server cannot be listed

    def _fetch(self, name: str) -> None:
        file = HttpFile.open(f"{self.url}/{name}")
        limit = LIMITS.get(name, SUBMISSION_BYTES)
        if file.size > limit:
            raise BadData(f"{file.url} has {file.size} bytes; at most {limit} are taken")
        self._fetched += file.size
        if self._fetched > MAX_FETCHED:
            raise BadData(f"{self.url}: over {MAX_FETCHED} bytes in all; at most that many are taken")
        if name == LEDGER:
            say(f"fetching {self.url}")
        write_atomically(self.folder / name, file.read(0, file.size, Event()))


def read_lines(content: bytes) -> tuple[list[Record], list[str]]:
    """The records of an exported ledger, and what is wrong with the other lines."""
    records, problems = [], []
    lines = content.split(b"\n")
    if lines.pop():
        problems.append(f"{LEDGER}: the last line is cut off")
    for number, line in enumerate(lines, 1):
        try:
            records.append(read_line(line))
        except ValueError as error:
            problems.append(f"{LEDGER}: line {number} {error}")
    return records, problems


def plain_file(folder: Path, path: str) -> Path | None:
    """A file below `folder`; None for a path that leads elsewhere."""
    found = folder / path
    return None if place_problem(path) or found.is_symlink() or not found.is_file() else found


def files_in(path: Path, folders: set[str]) -> list[str]:
    """The files below some folders of `path`, sorted, but for what a killed process left of one."""
    found = [item for folder in folders for item in (path / folder).rglob("*") if item.is_file()]
    return sorted(item.relative_to(path).as_posix() for item in found if not item.name.startswith("."))
