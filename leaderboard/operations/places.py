"""Where a board may be: a folder, an export of one, or behind an http(s) address."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from ...core.errors import FarshiftError
from ..board import Board
from ..storage.readers import LEDGER, ExportReader, UrlReader
from ..submission.remote import RemoteBoard
from .submit import submit
from .verify import Verification, verify


def verify_at(place: str, head: str | None = None, key: str | None = None) -> Verification:
    """Verify the board at a place; see `verify`."""
    if _is_url(place):
        with TemporaryDirectory(prefix="farshift-board-") as folder:
            return verify(UrlReader(place, Path(folder)), head, key)
    path = Path(place)
    if (path / LEDGER).is_file():
        return verify(ExportReader(path), head, key)
    return verify(Board(path), head, key)


def submit_at(place: str, file: Path) -> tuple[list[str], bool]:
    """Submit a file to the board at a place: the entries, and whether they are new."""
    return RemoteBoard(place).submit(file) if _is_url(place) else submit(Board(place), file)


def _is_url(place: str) -> bool:
    scheme, found, _ = place.partition("://")
    if found and scheme not in ("http", "https"):
        raise FarshiftError(f"{place}: a board is a folder, or behind http:// or https://")
    return bool(found)
