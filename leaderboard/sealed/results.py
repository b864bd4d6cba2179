"""The results of a board's windows: terms, the profile of the draw and, after the reveal, every team's score."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...core.errors import FarshiftError
from ..storage.board_files import digests
from .contrast import flagged
from .seal import profile_of
from .times import utc_now
from .window import Places, Window, find_window, windows

if TYPE_CHECKING:
    from ..board import Board


def results(board: Board, window: str) -> dict[str, Any]:
    """The results of a window, as plain JSON: its terms and state, how its draw compares with the public test, and,
    once it is revealed, every team's score and contrast, with Holm's correction over them."""
    found = find_window(board.ledger.records(), window)
    record: dict[str, Any] = {
        "terms": found.terms.record(),
        "commitment": found.commitment,
        "state": found.state(utc_now()),
        "answers": len(found.answers),
        "seed": None if found.secret is None else found.secret.hex(),
        "randomness": found.sources,
        "profile": None if found.opened is None else profile_of(board, found.name),
    }
    scores = {digest: _score(board, found, digest) for digest in found.scores}
    contrasts = flagged([score.get("contrast", {}) for score in scores.values()])
    record["entries"] = [
        {"team": found.answers[digest]["team"], "model": found.answers[digest]["model"], "submission": digest}
        | {"score": score.get("score"), "contrast": one, "n/a": score.get("n/a")}
        for (digest, score), one in zip(scores.items(), contrasts, strict=True)
    ]
    return record


def all_results(board: Board) -> list[dict[str, Any]]:
    """The results of every window of a board, in the ledger's order."""
    return [results(board, name) for name in windows(board.ledger.records())]


def _score(board: Board, window: Window, digest: str) -> Mapping[str, Any]:
    path = board.path / Places(window.name).score(digest)
    content = path.read_bytes() if path.is_file() else b""
    if digests({Places(window.name).score(digest): content}) != window.scores[digest]["files"]:
        raise FarshiftError(f"{path} is missing or was changed: farshift board verify {board.path} lists what differs")
    found: dict[str, Any] = json.loads(content)
    return found
