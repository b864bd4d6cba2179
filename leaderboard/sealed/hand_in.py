"""Handing answers to a sealed window in, at a board in its folder or behind an address."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...core.errors import BadData, FarshiftError
from ..board import Board
from ..submission.remote import RemoteBoard
from .receipt import Receipt, receipt_of
from .submit import submit_answers


def hand_in_at(place: str, window: str, file: Path, token: str = "") -> Receipt:
    """The board's receipt for a team's answers. Of a board behind an address it is checked that it is signed, and of
    this very file. Raises as `submit_answers` does."""
    from ...core.files import file_sha256
    from ..operations.places import is_url

    if not is_url(place):
        return submit_answers(Board(place), window, file)
    if not file.is_file():
        raise FarshiftError(f"{file} does not exist or is not a file")
    said = RemoteBoard(place, token).hand_in(window, file)
    new = said.pop("new", False) is True
    receipt = receipt_of(said, f"what {place} answered")
    if receipt.submission != file_sha256(file):
        raise BadData(f"what {place} answered is a receipt of other answers than {file}")
    return replace(receipt, new=new)
