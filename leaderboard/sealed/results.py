"""The results of a board's windows: terms, the profile of the draw and, after the reveal, every team's score."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.errors import FarshiftError
from ..storage.board_files import digests
from ..teams import labels, team_of
from .contrast import flagged
from .seal import profile_of
from .times import utc_now
from .window import Places, Window, find_window, windows

if TYPE_CHECKING:
    from ..board_view import BoardView


def results(board: BoardView, window: str) -> dict[str, Any]:
    """The results of a window, as plain JSON: its terms and state, how its draw compares with the public test, and,
    once it is revealed, every team's score and contrast, with Holm's correction over them."""
    found = find_window(board.records(), window)
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
    first = _first_of_equals(found)
    # Equal answers are one: they count once among the comparisons that Holm's correction is over.
    own = [digest for digest in scores if first[digest] == digest]
    contrasts = dict(zip(own, flagged([scores[digest].get("contrast", {}) for digest in own]), strict=True))
    names = labels(_team(found, digest) for digest in found.answers)
    record["entries"] = [
        {
            "team": names[team_of(_team(found, digest))],
            "model": found.answers[digest]["model"],
            "submission": digest,
            "signed_by": _team(found, digest).team_key,
            "equal_to": "" if first[digest] == digest else names[team_of(_team(found, first[digest]))],
            "score": score.get("score"),
            "contrast": contrasts[first[digest]],
            "n/a": score.get("n/a"),
        }
        for digest, score in scores.items()
    ]
    return record


@dataclass(frozen=True)
class Team:
    """The name and the public key that answers were given under."""

    team: str
    team_key: str


def _team(window: Window, digest: str) -> Team:
    body = window.answers[digest]
    return Team(str(body["team"]), str(body.get("signed_by", "")))


def _first_of_equals(window: Window) -> dict[str, str]:
    """The answers that were taken first of those with the same predictions, for each."""
    known: dict[str, str] = {}
    return {
        digest: known.setdefault(str(window.scores[digest].get("predictions", digest)), digest)
        for digest in window.answers
        if digest in window.scores
    }


def all_results(board: BoardView) -> list[dict[str, Any]]:
    """The results of every window of a board, in the ledger's order."""
    return [results(board, name) for name in windows(board.records())]


def _score(board: BoardView, window: Window, digest: str) -> Mapping[str, Any]:
    place = Places(window.name).score(digest)
    file = board.file(place)
    content = file.read_bytes() if file is not None else b""
    if digests({place: content}) != window.scores[digest]["files"]:
        raise FarshiftError(
            f"{board.path / place} is missing or was changed: farshift board verify {board.path} lists what differs"
        )
    found: dict[str, Any] = json.loads(content)
    return found
