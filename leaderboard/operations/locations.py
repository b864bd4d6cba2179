"""Where a board may be: its folder, an export of it in a folder or a zip file, or behind an http(s) address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ...core.errors import FarshiftError
from ...core.plugins import read_toml
from ..board import Board
from ..board_view import BoardView, ReadOnlyBoard
from ..ledger import Record
from ..ledger.chain import find_chain_problems
from ..ledger.heads import find_address_conflicts, find_history_conflicts, remember_history
from ..storage.readers import CARD, LEDGER, BoardReader, ExportReader, UrlReader, ZipReader
from ..submission.remote import RemoteBoard
from .submit import submit_runs
from .verify import Verification, verify_board


@contextmanager
def open_board(location: str) -> Iterator[Board | BoardReader]:
    """The board at a place, or a reader of the copy that is there, while the context lasts."""
    path = Path(location)
    if is_url(location) or path.is_file():
        with TemporaryDirectory(prefix="farshift-board-") as folder:
            yield UrlReader(location, Path(folder)) if is_url(location) else ZipReader(path, Path(folder))
    elif (path / LEDGER).is_file() and "store" not in read_toml(path / CARD):
        yield ExportReader(path)
    else:
        yield Board(path)


@contextmanager
def open_board_view(location: str) -> Iterator[BoardView]:
    """The board at a place to be read, while the context lasts. The history of a copy is checked, held to the one that
    was last seen, and kept. `FarshiftError` names the first thing that is wrong."""
    with open_board(location) as board:
        if isinstance(board, Board):
            yield board
            return
        yield ReadOnlyBoard(board, read_history(board))


def read_history(copy: BoardReader) -> list[Record]:
    """The records of a copy: its chain and signatures are checked, it must extend what this user saw of it, and is
    remembered. `FarshiftError` names the first thing that is wrong."""
    records, problems = copy.read()
    key = str(copy.card.get("key"))
    problems += find_chain_problems(records, key)
    problems = problems or find_history_conflicts(records, key) + (
        find_address_conflicts(copy.address, key) if copy.address else []
    )
    if problems:
        raise FarshiftError(f"{copy.location}: {problems[0]}")
    remember_history(records, key, copy.address)
    return records


def verify_at(
    location: str,
    head: str | None = None,
    key: str | None = None,
    *,
    workers: int = 1,
    fresh: bool = False,
) -> Verification:
    """Verify the board at a place; see `verify_board`."""
    with open_board(location) as board:
        return verify_board(board, head, key, workers=workers, fresh=fresh)


def submit_at(location: str, file: Path, token: str = "") -> tuple[list[str], bool]:
    """Submit a file to the board at a place: the entries, and whether they are new. token: the access token for a board
    behind an address; by default the user's."""
    return RemoteBoard(location, token).submit(file) if is_url(location) else submit_runs(Board(location), file)


def is_url(location: str) -> bool:
    """Whether a board is behind an http(s) address rather than in a folder."""
    scheme, separator, _ = location.partition("://")
    if separator and scheme not in ("http", "https"):
        raise FarshiftError(f"{location}: a board is a folder, or behind http:// or https://")
    return bool(separator)
