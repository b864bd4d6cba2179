"""Remove an entry from the tables: withdrawn by its team or removed by the board, always with a reason.

Nothing is deleted: the ledger, the submission and its scores stay and can be verified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import FarshiftError, UnknownName
from ..entries import read_valid_entries

if TYPE_CHECKING:
    from ..board import Board

MAX_REASON = 1000


def withdraw_entry(board: Board, entry: str, reason: str) -> None:
    """Withdraw an entry, on behalf of its team."""
    _delist_entry(board, entry, "withdrawn", reason)


def remove_entry(board: Board, entry: str, reason: str) -> None:
    """Remove an entry, on behalf of the board. A withdrawn entry can be removed too."""
    _delist_entry(board, entry, "removed", reason)


def _delist_entry(board: Board, entry: str, kind: str, reason: str) -> None:
    from ..server.accounts.audit import commit_event, get_operator

    reason = " ".join(reason.split())
    if not 0 < len(reason) <= MAX_REASON or not reason.isprintable():
        raise FarshiftError(f"entry {entry}: the reason must have 1 to {MAX_REASON} printable characters")
    with board.locked():
        known_entries = read_valid_entries(board.ledger.records())
        if entry not in known_entries:
            raise UnknownName("entry", entry, known_entries)
        removal = known_entries[entry].left
        if removal is not None and removal.kind in (kind, "removed"):
            raise FarshiftError(f"{known_entries[entry]} was already {removal.kind} ({removal.reason})")
        board.enter([(kind, {"entry": entry, "reason": reason})], {})
    commit_event(board.ledger.store, get_operator(), f"entry-{kind}", entry=entry, reason=reason)
