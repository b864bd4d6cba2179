"""The results of a board's windows: terms, the profile of the draw and, after the reveal, every team's score."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.errors import FarshiftError
from ..storage.board_files import compute_digests
from ..teams import identify_team, make_team_labels
from .contrast import flag_contrasts
from .seal import read_profile
from .times import get_utc_time
from .window import Window, WindowPaths, find_window, read_windows

if TYPE_CHECKING:
    from ..board_view import BoardView


def make_window_results(board: BoardView, window: str) -> dict[str, Any]:
    """The results of a window, as plain JSON: its terms and state, the comparison of its draw with the public test,
    and, once it is revealed, every team's score and contrast, with Holm's correction over the teams."""
    sealed_window = find_window(board.records(), window)
    record: dict[str, Any] = {
        "terms": sealed_window.terms.record(),
        "commitment": sealed_window.commitment,
        "state": sealed_window.state(get_utc_time()),
        "answers": len(sealed_window.answers),
        "seed": None if sealed_window.secret is None else sealed_window.secret.hex(),
        "randomness": sealed_window.sources,
        "profile": None if sealed_window.opened is None else read_profile(board, sealed_window.name),
    }
    scores = {digest: _read_score(board, sealed_window, digest) for digest in sealed_window.scores}
    first = _find_first_equals(sealed_window)
    # Submissions with equal predictions count once among the comparisons of Holm's correction.
    own = [digest for digest in scores if first[digest] == digest]
    contrasts = dict(zip(own, flag_contrasts([scores[digest].get("contrast", {}) for digest in own]), strict=True))
    names = make_team_labels(_read_team(sealed_window, digest) for digest in sealed_window.answers)
    record["entries"] = [
        {
            "team": names[identify_team(_read_team(sealed_window, digest))],
            "model": sealed_window.answers[digest]["model"],
            "submission": digest,
            "signed_by": _read_team(sealed_window, digest).team_key,
            "equal_to": ""
            if first[digest] == digest
            else names[identify_team(_read_team(sealed_window, first[digest]))],
            "score": score.get("score"),
            "contrast": contrasts[first[digest]],
            "n/a": score.get("n/a"),
        }
        for digest, score in scores.items()
    ]
    return record


@dataclass(frozen=True)
class Team:
    """The name and the public key of a submission to a window."""

    team: str
    team_key: str


def _read_team(window: Window, digest: str) -> Team:
    body = window.answers[digest]
    return Team(str(body["team"]), str(body.get("signed_by", "")))


def _find_first_equals(window: Window) -> dict[str, str]:
    """For each digest of predictions, the submission that was accepted first."""
    known: dict[str, str] = {}
    return {
        digest: known.setdefault(str(window.scores[digest].get("predictions", digest)), digest)
        for digest in window.answers
        if digest in window.scores
    }


def list_window_results(board: BoardView) -> list[dict[str, Any]]:
    """The results of every window of a board, in the ledger's order."""
    return [make_window_results(board, name) for name in read_windows(board.records())]


def _read_score(board: BoardView, window: Window, digest: str) -> Mapping[str, Any]:
    path = WindowPaths(window.name).score(digest)
    file = board.file(path)
    content = file.read_bytes() if file is not None else b""
    if compute_digests({path: content}) != window.scores[digest]["files"]:
        raise FarshiftError(
            f"{board.path / path} is missing or was changed: run farshift board verify {board.path} to list "
            "what differs"
        )
    score: dict[str, Any] = json.loads(content)
    return score
