"""Where a board may be: its folder, an export of it in a folder or a zip file, or behind an http(s) address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ...core.errors import FarshiftError
from ...core.plugins import read_toml
from ..board import Board
from ..board_view import BoardView, Reading
from ..ledger import Record
from ..ledger.chain import chain_problems
from ..ledger.heads import remember, unlike_place, unlike_seen
from ..storage.readers import CARD, LEDGER, BoardReader, ExportReader, UrlReader, ZipReader
from ..submission.remote import RemoteBoard
from .submit import submit
from .verify import Verification, verify


@contextmanager
def opened(place: str) -> Iterator[Board | BoardReader]:
    """The board at a place, or a reader of the copy that is there, while the context lasts."""
    path = Path(place)
    if is_url(place) or path.is_file():
        with TemporaryDirectory(prefix="farshift-board-") as folder:
            yield UrlReader(place, Path(folder)) if is_url(place) else ZipReader(path, Path(folder))
    elif (path / LEDGER).is_file() and "store" not in read_toml(path / CARD):
        yield ExportReader(path)
    else:
        yield Board(path)


@contextmanager
def viewed(place: str) -> Iterator[BoardView]:
    """The board at a place to be read, while the context lasts. The history of a copy is checked, held to the one that
    was last seen, and kept. `FarshiftError` names the first thing that is wrong."""
    with opened(place) as found:
        if isinstance(found, Board):
            yield found
            return
        yield Reading(found, read_history(found))


def read_history(copy: BoardReader) -> list[Record]:
    """The records of a copy: its chain and signatures are checked, it must extend what this user saw of it, and is
    remembered. `FarshiftError` names the first thing that is wrong."""
    records, problems = copy.read()
    key = str(copy.card.get("key"))
    problems += chain_problems(records, key)
    problems = problems or unlike_seen(records, key) + (unlike_place(copy.address, key) if copy.address else [])
    if problems:
        raise FarshiftError(f"{copy.place}: {problems[0]}")
    remember(records, key, copy.address)
    return records


def verify_at(
    place: str,
    head: str | None = None,
    key: str | None = None,
    *,
    workers: int = 1,
    fresh: bool = False,
) -> Verification:
    """Verify the board at a place; see `verify`."""
    with opened(place) as found:
        return verify(found, head, key, workers=workers, fresh=fresh)


def submit_at(place: str, file: Path, token: str = "") -> tuple[list[str], bool]:
    """Submit a file to the board at a place: the entries, and whether they are new. token: the access token for a board
    behind an address; by default the user's."""
    return RemoteBoard(place, token).submit(file) if is_url(place) else submit(Board(place), file)


def is_url(place: str) -> bool:
    """Whether a board is behind an http(s) address rather than in a folder."""
    scheme, found, _ = place.partition("://")
    if found and scheme not in ("http", "https"):
        raise FarshiftError(f"{place}: a board is a folder, or behind http:// or https://")
    return bool(found)
