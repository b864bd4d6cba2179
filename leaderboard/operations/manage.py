"""What a board's operator does to its entries and its key, always by a record of the ledger: nothing is deleted.

An entry is withdrawn by its team or removed by the board; the ledger, the submission and its scores stay and can be
verified. Reference entries are always ranked, such as the baselines of a whole catalogue, which all have one team;
entries are declared, not a team, because others may use the same team name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError, UnknownName
from ...core.files import BOARD_ADVICE, fsync_folder, translate_os_errors
from ..board import Board, get_key_path
from ..entries import read_valid_entries
from ..ledger import Record
from ..ledger.keys import create_key
from ..ledger.record import ROTATED

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


def rotate_key(board: Board, reason: str) -> tuple[Record, Path]:
    """Give a board a new key, with a reason in the ledger. Returns the record, and the path of the old key, which signs
    no more records."""
    if not reason.strip():
        raise FarshiftError("a key rotation needs a reason: give it with --reason")
    path = get_key_path(board.path)
    with board.locked():
        following = create_key(path.with_name(f"{path.name}.next"))
        if board.ledger.current() == following.public:  # the record was appended before the process was killed
            record = board.ledger.store.of_kind(ROTATED)[-1]
        else:
            (record,) = board.enter([(ROTATED, {"key": following.public, "reason": reason.strip()})], {})
        old = path.with_name(f"{path.stem}-until-{record.seq}{path.suffix}")
        with translate_os_errors(path, BOARD_ADVICE):
            if path.exists():
                path.replace(old)
            following.path.replace(path)
            fsync_folder(path.parent)
    return record, old
