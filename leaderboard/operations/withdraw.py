"""Taking an entry out of the tables: withdrawn by its team or removed by the board, always with a reason.

Nothing is deleted: the ledger, the submission and its scores stay, and stay verifiable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import FarshiftError, UnknownName
from ..entries import entries

if TYPE_CHECKING:
    from ..board import Board

MAX_REASON = 1000


def withdraw(board: Board, entry: str, reason: str) -> None:
    """Its team takes an entry out."""
    _leave(board, entry, "withdrawn", reason)


def remove(board: Board, entry: str, reason: str) -> None:
    """The board takes an entry out, also one that was withdrawn."""
    _leave(board, entry, "removed", reason)


def _leave(board: Board, entry: str, kind: str, reason: str) -> None:
    from ..server.accounts.audit import noted, operator

    reason = " ".join(reason.split())
    if not 0 < len(reason) <= MAX_REASON or not reason.isprintable():
        raise FarshiftError(f"a reason must have 1 to {MAX_REASON} printable characters: say why entry {entry} goes")
    with board.locked():
        there = entries(board.ledger.records())
        if entry not in there:
            raise UnknownName("entry", entry, there)
        left = there[entry].left
        if left is not None and left.kind in (kind, "removed"):
            raise FarshiftError(f"{there[entry]} was {left.kind} already ({left.reason})")
        board.enter([(kind, {"entry": entry, "reason": reason})], {})
    noted(board.ledger.store, operator(), f"entry-{kind}", entry=entry, reason=reason)
