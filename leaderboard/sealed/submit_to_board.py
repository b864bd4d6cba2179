"""Submit predictions for a sealed window to a board in a folder or behind a URL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...core.errors import BadData, FarshiftError
from ..board import Board
from ..submission.remote import RemoteBoard
from .receipt import Receipt, parse_receipt
from .submit import submit_answers


def submit_to_board(location: str, window: str, file: Path, token: str = "") -> Receipt:
    """Submit a team's file and return the board's receipt. For a board behind a URL, the receipt is checked to be
    signed and to be for this file. Raises as `submit_answers` does."""
    from ...core.files import compute_file_sha256
    from ..operations.locations import is_url

    if not is_url(location):
        return submit_answers(Board(location), window, file)
    if not file.is_file():
        raise FarshiftError(f"{file} does not exist or is not a file")
    answer = RemoteBoard(location, token).hand_in(window, file)
    new = answer.pop("new", False) is True
    receipt = parse_receipt(answer, f"what {location} answered")
    if receipt.submission != compute_file_sha256(file):
        raise BadData(f"the receipt from {location} is for another file than {file}")
    return replace(receipt, new=new)
