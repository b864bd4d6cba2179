"""Locations of a board: its folder, an export in a folder, or an http(s) URL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ...core.documents import read_toml
from ..board import Board
from ..board_view import BoardView
from ..storage.http import is_url
from ..storage.readers import CARD, LEDGER, ExportReader, UrlReader
from ..submission.remote import RemoteBoard
from .submit import submit_runs
from .verify import Verification, verify_board


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


def verify_at(location: str, head: str | None = None, key: str | None = None, *, workers: int = 1) -> Verification:
    """Verify the board at a location; see `verify_board`."""
    with open_board(location) as board:
        return verify_board(board, head, key, workers=workers)


def submit_at(location: str, file: Path, token: str = "") -> tuple[list[str], bool]:
    """Submit a file to the board at a location. Returns the entries, and whether they are new. token: the access token
    for a board behind a URL; by default the user's."""
    return RemoteBoard(location, token).submit(file) if is_url(location) else submit_runs(Board(location), file)
