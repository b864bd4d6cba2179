"""Handing answers to a sealed window in, at a board in its folder or behind an address."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...core.errors import BadData, FarshiftError
from ..board import Board
from ..submission.remote import RemoteBoard
from .receipt import Receipt, parse_receipt
from .submit import submit_answers


def submit_to_board(location: str, window: str, file: Path, token: str = "") -> Receipt:
    """The board's receipt for a team's answers. Of a board behind an address it is checked that it is signed, and of
    this very file. Raises as `submit_answers` does."""
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
        raise BadData(f"what {location} answered is a receipt of other answers than {file}")
    return replace(receipt, new=new)
