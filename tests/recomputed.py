"""What a board's own verification finds."""

from __future__ import annotations

from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.verify import verify_board


def verified(board: Board) -> tuple[int, list[str]]:
    """Entries and differences."""
    found = verify_board(board)
    assert found.not_recomputed == []
    return found.entries, found.differences
