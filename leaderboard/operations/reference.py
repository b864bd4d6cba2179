"""Reference entries, which a board's operator declares to be always ranked, such as the baselines of a whole catalogue,
which all have one team. They are declared in a record of the ledger, so that anybody with an export ranks the same
entries. Entries are declared, not a team, because others may use the same team name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.errors import UnknownName
from ..entries import read_valid_entries

if TYPE_CHECKING:
    from ..board import Board


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
