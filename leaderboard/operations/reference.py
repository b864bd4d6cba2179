"""Reference entries: those that a board's operator declares to be of their tables' fields as they are, such as the
baselines of a whole catalogue, which are all of one team. A record of the ledger says so, so that whoever has an export
takes rank sets over the same field. What is declared is entries, not a team: no name that others may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.errors import UnknownName
from ..entries import read_valid_entries

if TYPE_CHECKING:
    from ..board import Board


def declare_references(board: Board, names: Sequence[str]) -> list[str]:
    """Declare entries to be of the field. Returns those that were not before."""
    with board.locked():
        known_entries = read_valid_entries(board.ledger.records())
        for name in names:
            if name not in known_entries:
                raise UnknownName("entry", name, known_entries)
        new = [name for name in dict.fromkeys(names) if not known_entries[name].reference]
        if new:
            board.enter([("referenced", {"declared": new})], {})
    return new
