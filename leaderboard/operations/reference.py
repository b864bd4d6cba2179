"""Reference entries: those that a board's operator declares to be of their tables' fields as they are, such as the
baselines of a whole catalogue, which are all of one team. A record of the ledger says so, so that whoever has an export
takes rank sets over the same field. What is declared is entries, not a team: no name that others may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.errors import UnknownName
from ..entries import entries

if TYPE_CHECKING:
    from ..board import Board


def reference(board: Board, names: Sequence[str]) -> list[str]:
    """Declare entries to be of the field. Returns those that were not before."""
    with board.locked():
        there = entries(board.ledger.records())
        for name in names:
            if name not in there:
                raise UnknownName("entry", name, there)
        new = [name for name in dict.fromkeys(names) if not there[name].reference]
        if new:
            board.enter([("referenced", {"declared": new})], {})
    return new
