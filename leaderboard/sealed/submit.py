"""A board takes answers to a window: valid ones, one of each team, while the window is open. What it gives back is a
receipt, and says nothing of whether anything is right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import FarshiftError
from ..storage.board_files import digests
from .answers import check_answers
from .benchmark import sealed_benchmark
from .draw_folder import benchmark_of, read_draw
from .times import Clock, utc_now
from .window import Places, Window, find_window, team_id, windows

if TYPE_CHECKING:
    from ..board import Board


@dataclass(frozen=True)
class Receipt:
    """What a team gets back. submission: sha256 of its file; seq: the ledger's record; new: whether this is the first
    time that this file was submitted."""

    window: str
    team: str
    submission: str
    seq: int
    time: str
    new: bool

    def record(self) -> dict[str, Any]:
        return asdict(self)


def submit_answers(board: Board, window: str, file: Path | str, key: str = "", clock: Clock = utc_now) -> Receipt:
    """Take a team's answers to a window. Handing the same file in again changes nothing.

    key: a secret of the team's own. A team that once gave one must give it ever after, so that nobody else answers
    under its name; the ledger has its digest only. `FarshiftError` where the window is not open, the team has answered,
    or the key is another; `BadSubmission` with every problem of the file."""
    found = find_window(board.ledger.records(), window)
    _require_open(found, clock())
    content = Path(file).read_bytes() if Path(file).is_file() else b""
    given = read_draw((board.path / Places(found.name).card).parent)
    submission, entry = check_answers(file, sealed_benchmark(benchmark_of(found.terms), given))
    if sha256(content).hexdigest() != submission.digest:
        raise FarshiftError(f"{file} changed while it was being checked: hand it in again")
    with board.locked():
        records = board.ledger.records()
        current = windows(records)
        found = current[found.name]
        for record in records:
            mine = record.kind == "submitted" and record.body.get("window") == found.name
            if mine and record.body["submission"] == submission.digest:
                return Receipt(found.name, submission.team, submission.digest, record.seq, record.time, False)
        _require_open(found, clock())
        hashed = key_digest(submission.team, key)
        _require_first(found, submission.team)
        _require_key(current.values(), submission.team, hashed)
        files = {Places(found.name).answers(submission.digest): content}
        body = {
            "window": found.name,
            "submission": submission.digest,
            "team": submission.team,
            "note": submission.note,
            "model": entry.model,
            "team_key": hashed,
            "entries": [],
            "files": digests(files),
        }
        (added,) = board.enter([("submitted", body)], files)
    return Receipt(found.name, submission.team, submission.digest, added.seq, added.time, True)


def key_digest(team: str, key: str) -> str:
    """What the ledger has of a team's key: sha256 over its name and the key; empty where it gave none."""
    return sha256(f"{team_id(team)}\n{key}".encode()).hexdigest() if key else ""


def _require_open(window: Window, now: datetime) -> None:
    state = window.state(now)
    if state != "open" or window.closed is not None:
        raise FarshiftError(
            f"window {window.name} takes answers from {window.terms.opens} to {window.terms.closes}: it is {state} now"
        )


def _require_first(window: Window, team: str) -> None:
    for digest, body in window.answers.items():
        if team_id(body["team"]) == team_id(team):
            raise FarshiftError(
                f"team {team!r} submitted its answers to window {window.name} at {window.times[digest]} "
                f"({digest[:12]}..): one submission is taken of each team"
            )


def _require_key(every: Iterable[Window], team: str, hashed: str) -> None:
    mine = [body for one in every for body in one.answers.values() if team_id(body["team"]) == team_id(team)]
    known = {body["team_key"] for body in mine} - {""}
    if known and hashed not in known:
        raise FarshiftError(f"team {team!r} has submitted with a key before: give it (--key), or take another name")
