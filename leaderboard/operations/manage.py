"""What a board's operator does to its entries, always by a record of the ledger: nothing is deleted.

An entry is withdrawn by its team or removed by the board; the ledger, the submission and its scores stay and can be
verified. Reference entries are always ranked, such as the baselines of a whole catalogue, which all have one team;
entries are declared, not a team, because others may use the same team name.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.errors import FarshiftError, UnknownName
from ..board import Board
from ..entries import read_valid_entries

MAX_REASON = 1000


def withdraw_entry(board: Board, entry: str, reason: str, by_board: bool = False) -> None:
    """Withdraw an entry on behalf of its team, or remove it on behalf of the board, which is final."""
    kind = "removed" if by_board else "withdrawn"
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


def declare_references(board: Board, names: Sequence[str]) -> list[str]:
    """Declare entries as references. Returns those that were not references before."""
    with board.locked():
        known_entries = read_valid_entries(board.ledger.records())
        for name in names:
            if name not in known_entries:
                raise UnknownName("entry", name, known_entries)
        new = [name for name in dict.fromkeys(names) if not known_entries[name].reference]
        if new:
            board.enter([("referenced", {"declared": new})], {})
    return new
