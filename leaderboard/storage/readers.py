"""Copies of a board: an export in a folder or behind a URL, read like the board itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ...core.documents import read_toml
from ...core.errors import BadData, Unavailable
from ...core.files import write_atomically
from ...core.progress import log_message
from ..ledger import Record
from ..ledger.record import read_line
from ..validation.limits import SUBMISSION_BYTES
from .board_files import find_path_problem, list_files, resolve_file
from .http import fetch

LEDGER = "ledger.jsonl"
CARD = "board.toml"
LIMITS = {CARD: 1 << 16, LEDGER: 1 << 30}
"""Maximum bytes to fetch for these files; for any other file the limit is a submission's."""

MAX_FETCHED = 1 << 36
"""Maximum bytes to fetch in total."""


class BoardReader(Protocol):
    """A board, or a copy of one. card: the content of board.toml; folder: the folder of the files that `file` returned;
    whole: whether it must also have files that are not public yet; address: the URL that it was fetched from, if
    any."""

    location: str
    folder: Path
    card: dict[str, Any]
    has_private_files: bool
    address: str

    def read(self) -> tuple[list[Record], list[str]]:
        """The unchecked records, and the problems of lines that are not records."""
        ...

    def file(self, path: str) -> Path | None:
        """The local path of a file that a record names; None if it is missing. Raises `Unavailable` if a server does
        not return it, and `BadData` if it is too large."""
        ...

    def strays(self, folders: set[str]) -> list[str]:
        """The files in these folders, if they can be listed."""
        ...


class ExportReader:
    """A folder that `farshift board export` wrote."""

    has_private_files = False
    address = ""

    def __init__(self, path: Path) -> None:
        self.location, self.folder = str(path), path
        self.card = read_toml(path / CARD)

    def read(self) -> tuple[list[Record], list[str]]:
        return read_ledger_lines((self.folder / LEDGER).read_bytes())

    def file(self, path: str) -> Path | None:
        return resolve_file(self.folder, path)

    def strays(self, folders: set[str]) -> list[str]:
        return list_files(self.folder, folders)


class UrlReader:
    """An export behind an http(s) URL, whose files are fetched one by one into a temporary folder, each on first
    use."""

    has_private_files = False

    def __init__(self, url: str, folder: Path) -> None:
        self.location, self.address, self.folder = url, url.rstrip("/"), folder
        self._fetched = 0
        self._fetch(CARD)
        self.card = read_toml(folder / CARD)

    def read(self) -> tuple[list[Record], list[str]]:
        if not (self.folder / LEDGER).is_file():
            log_message(f"fetching {self.address}")
            self._fetch(LEDGER)
        return read_ledger_lines((self.folder / LEDGER).read_bytes())

    def file(self, path: str) -> Path | None:
        if not find_path_problem(path) and not (self.folder / path).is_file():
            self._fetch(path)
        return resolve_file(self.folder, path)

    def strays(self, folders: set[str]) -> list[str]:
        return []  # the files of a web server cannot be listed

    def _fetch(self, name: str) -> None:
        answer = fetch(f"{self.address}/{name}", LIMITS.get(name, SUBMISSION_BYTES))
        if answer.status != 200:
            raise Unavailable(f"{answer.url}: the server answered {answer.status}")
        self._fetched += len(answer.content)
        if self._fetched > MAX_FETCHED:
            raise BadData(f"{self.location}: more than {MAX_FETCHED} bytes in total, the maximum")
        write_atomically(self.folder / name, answer.content)


def read_ledger_lines(content: bytes) -> tuple[list[Record], list[str]]:
    """The records of an exported ledger, and the problems of the other lines."""
    records, problems = [], []
    lines = content.split(b"\n")
    if lines.pop():
        problems.append(f"{LEDGER}: the last line is incomplete")
    for number, line in enumerate(lines, 1):
        try:
            records.append(read_line(line))
        except ValueError as error:
            problems.append(f"{LEDGER}: line {number} {error}")
    return records, problems
