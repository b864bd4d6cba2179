"""The model cards of a board's submissions, as their teams filled them in."""

from __future__ import annotations

import tomllib
import zipfile
from functools import lru_cache

from ..board_view import BoardView
from ..tables.snapshot import Snapshot
from ..validation.archive import CARD
from ..validation.card import ModelCard, SubmissionCard, submission_card
from ..validation.problem import Problems

MOST_BYTES = 1 << 20
"""A card that is larger was never accepted."""


def card_of(view: BoardView | None, submission: str) -> SubmissionCard | None:
    """The card of a submission; None without its file, or where that is no submission."""
    return None if view is None else _read(str(view.submission_file(submission)), submission)


def model_cards(view: BoardView | None, snapshot: Snapshot) -> dict[str, ModelCard]:
    """The model cards of all entries that are in a table, by submission."""
    wanted = {row.standing.submission for one in snapshot.views for row in one.rows}
    found = {name: card_of(view, name) for name in sorted(wanted)}
    return {name: card.model for name, card in found.items() if card is not None}


@lru_cache(maxsize=4096)
def _read(path: str, submission: str) -> SubmissionCard | None:
    """A submission's name is its content's digest, so that what was read of it once stays true."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(CARD).file_size > MOST_BYTES:
                return None
            said = tomllib.loads(archive.read(CARD).decode("utf-8"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return None
    return submission_card(said, CARD, Problems())
