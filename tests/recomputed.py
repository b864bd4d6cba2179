"""What a board's own verification finds."""

from __future__ import annotations

from farshift.leaderboard.board import Board


def verified(board: Board) -> tuple[int, list[str]]:
    """Entries and differences."""
    found = board.verify()
    assert found.not_recomputed == []
    return found.entries, found.differences
