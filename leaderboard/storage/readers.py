"""A board as somebody finds it: its folder, an export of it, or an export behind a URL. All are read the same way."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol

from ...core.errors import BadData, FarshiftError
from ...core.files import write_atomically
from ...core.plugins import read_toml
from ...core.progress import say
from ...loaders.remote.http import HttpFile
from ..ledger import Record
from ..ledger.record import read_line
from ..validation.limits import SUBMISSION_BYTES
from .board_files import named_files, place_problem

if TYPE_CHECKING:
    from ..board import Board

LEDGER = "ledger.jsonl"
CARD = "board.toml"
LIMITS = {CARD: 1 << 16, LEDGER: 1 << 30}
"""Bytes that are taken from a stranger for these files; a submission's limit for any other."""

MAX_FETCHED = 1 << 36
"""Bytes that are taken from a stranger in all."""


class BoardReader(Protocol):
    """A board's copy. card: what board.toml says; folder: where its files lie once `file` gave them; whole: whether it
    must also have what is held back from others."""

    place: str
    folder: Path
    card: dict[str, Any]
    whole: bool

    def read(self) -> tuple[list[Record], list[str]]:
        """The records as they lie there, and what could not be read as one."""
        ...

    def file(self, path: str) -> Path | None:
        """A file that a record names, here to be read; None where it is missing. `Unavailable` where a server does not
        give it, `BadData` where it gives too much."""
        ...

    def strays(self, folders: set[str]) -> list[str]:
        """The files that lie in these folders, as far as anybody can tell."""
        ...


class FolderReader:
    """A board's own folder."""

    whole = True

    def __init__(self, board: Board) -> None:
        self.place, self.folder, self.card, self._board = str(board.path), board.path, board.card, board

    def read(self) -> tuple[list[Record], list[str]]:
        # What a killed submit left is finished first; where the chain is broken, that waits.
        with suppress(FarshiftError):
            self._board.settled()
        return self._board.ledger.store.records(), []

    def file(self, path: str) -> Path | None:
        return _plain_file(self.folder, path)

    def strays(self, folders: set[str]) -> list[str]:
        found = files_in(self.folder, folders)
        return sorted(set(found) - set(named_files(self._board.ledger.store.records())))  # entered meanwhile


class ExportReader:
    """A folder that `farshift board export` wrote."""

    whole = False

    def __init__(self, path: Path) -> None:
        self.place, self.folder = str(path), path
        self.card = read_toml(path / CARD)

    def read(self) -> tuple[list[Record], list[str]]:
        return read_lines((self.folder / LEDGER).read_bytes())

    def file(self, path: str) -> Path | None:
        return _plain_file(self.folder, path)

    def strays(self, folders: set[str]) -> list[str]:
        return files_in(self.folder, folders)


class UrlReader:
    """An export behind an http(s) address, fetched file by file into a folder that is thrown away."""

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
        return _plain_file(self.folder, path)

    def strays(self, folders: set[str]) -> list[str]:
        return []  # nobody lists a web server's files

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
    """The records of an exported ledger, and what is wrong with lines that hold none."""
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


def _plain_file(folder: Path, path: str) -> Path | None:
    """A file below `folder`; None for a path that leads elsewhere, whoever named it."""
    found = folder / path
    return None if place_problem(path) or found.is_symlink() or not found.is_file() else found


def files_in(path: Path, folders: set[str]) -> list[str]:
    """The files below some folders of `path`, sorted, but for what a killed process left of one."""
    found = [item for folder in folders for item in (path / folder).rglob("*") if item.is_file()]
    return sorted(item.relative_to(path).as_posix() for item in found if not item.name.startswith("."))
