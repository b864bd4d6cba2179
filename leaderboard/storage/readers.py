"""Copies of a board: an export in a folder or behind a URL, read like the board itself. The history of a copy is
compared with the one that this user saw last, and stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ...core.documents import read_toml
from ...core.errors import BadData, BadDefinition, FarshiftError, Unavailable
from ...core.files import write_atomically
from ...core.progress import log_message
from ..board import Board
from ..board_view import BoardView
from ..ledger import Record
from ..ledger.heads import find_history_conflicts, remember_history
from ..ledger.record import find_chain_problems, read_line
from ..validation.limits import SUBMISSION_BYTES
from .board_files import find_path_problem, list_files, resolve_file
from .http import fetch, is_url

LEDGER = "ledger.jsonl"
CARD = "board.toml"
LIMITS = {CARD: 1 << 16, LEDGER: 1 << 30}
"""Maximum bytes to fetch for these files; for any other file the limit is a submission's."""

MAX_FETCHED = 1 << 36
"""Maximum bytes to fetch in total."""


class ExportReader(BoardView):
    """A folder that `farshift board export` wrote."""

    def __init__(self, path: Path) -> None:
        self.location, self.path = str(path), path
        self.card = read_toml(path / CARD)

    def read_checked(self) -> list[Record]:
        records, problems = self.read()
        key = str(self.card.get("key"))
        problems += find_chain_problems(records, key)
        problems = problems or find_history_conflicts(records, key, self.address)
        if problems:
            raise FarshiftError(f"{self.location}: {problems[0]}")
        remember_history(records, key, self.address)
        self._records = records
        return list(records)

    def read(self) -> tuple[list[Record], list[str]]:
        records, problems = [], []
        lines = (self.path / LEDGER).read_bytes().split(b"\n")
        if lines.pop():
            problems.append(f"{LEDGER}: the last line is incomplete")
        for number, line in enumerate(lines, 1):
            try:
                records.append(read_line(line))
            except ValueError as error:
                problems.append(f"{LEDGER}: line {number} {error}")
        return records, problems

    def strays(self, folders: set[str]) -> list[str]:
        return list_files(self.path, folders)


class UrlReader(ExportReader):
    """An export behind an http(s) URL, whose files are fetched one by one into a temporary folder, each on first
    use."""

    def __init__(self, url: str, folder: Path) -> None:
        self.location, self.address, self.path = url, url.rstrip("/"), folder
        self._fetched = 0
        self._fetch(CARD)
        try:
            self.card = read_toml(folder / CARD)
        except BadDefinition as error:
            why = str(error).removeprefix(f"{folder / CARD}: ")
            raise BadData(f"{url} is not a Farshift board: {self.address}/{CARD} is {why}") from error

    def read(self) -> tuple[list[Record], list[str]]:
        if not (self.path / LEDGER).is_file():
            log_message(f"fetching {self.address}")
            self._fetch(LEDGER)
        return super().read()

    def file(self, path: str) -> Path | None:
        if not find_path_problem(path) and not (self.path / path).is_file():
            self._fetch(path)
        return resolve_file(self.path, path)

    def strays(self, folders: set[str]) -> list[str]:
        return []  # the files of a web server cannot be listed

    def _fetch(self, name: str) -> None:
        answer = fetch(f"{self.address}/{name}", LIMITS.get(name, SUBMISSION_BYTES))
        if answer.status != 200:
            missing = f"{self.location} is not a Farshift board: " if name == CARD else ""
            raise Unavailable(f"{missing}{answer.url}: the server answered {answer.status}")
        self._fetched += len(answer.content)
        if self._fetched > MAX_FETCHED:
            raise BadData(f"{self.location}: more than {MAX_FETCHED} bytes in total, the maximum")
        write_atomically(self.path / name, answer.content)


@contextmanager
def open_board(location: str) -> Iterator[BoardView]:
    """Open the board at a location, or the copy there, within the context."""
    path = Path(location)
    if is_url(location):
        with TemporaryDirectory(prefix="farshift-board-") as folder:
            yield UrlReader(location, Path(folder))
    elif (path / LEDGER).is_file() and "store" not in read_toml(path / CARD):
        yield ExportReader(path)
    else:
        yield Board(path)


@contextmanager
def open_board_view(location: str) -> Iterator[BoardView]:
    """Open a read-only view of the board at a location, within the context. The history of a copy is checked, compared
    with the one that this user saw last, and stored. `FarshiftError` names the first problem."""
    with open_board(location) as board:
        if isinstance(board, ExportReader):
            board.records()
        yield board
