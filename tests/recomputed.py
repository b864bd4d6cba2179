"""What a board's own verification finds."""

from __future__ import annotations

from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.verify import verify_board


def verified(board: Board) -> tuple[int, list[str]]:
    """Entries and differences."""
    result = verify_board(board)
    assert result.not_recomputed == []
    return result.entries, result.differences
