"""A board takes answers to a window: valid ones, signed, one of each team's key, while the window is open. What it
gives back is a receipt, and says nothing of whether anything is right."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError, NotTaken
from ..ledger import Record
from ..ledger.rotation import rotations
from ..storage.board_files import digests
from ..submission.validate import Allowed
from ..teams import fingerprint
from .answers import check_answers, draw_of
from .benchmark import sealed_benchmark
from .draw_folder import benchmark_of
from .receipt import Receipt
from .times import Clock, utc_now
from .window import Places, Window, find_window, windows

if TYPE_CHECKING:
    from ..board import Board


def submit_answers(
    board: Board, window: str, file: Path | str, clock: Clock = utc_now, allowed: Allowed | None = None
) -> Receipt:
    """Take a team's answers to a window. Handing the same file in again changes nothing, and gives the receipt again.

    Who a team is, is the key that signed them: names are labels, and anybody may have any. `FarshiftError` where the
    window is not open, nobody signed, or the key has answered; `BadSubmission` with every problem of the file."""
    found = find_window(board.ledger.records(), window)
    _require_open(found, clock())
    content = Path(file).read_bytes() if Path(file).is_file() else b""
    given = draw_of(board, found.name)
    submission, entry = check_answers(file, sealed_benchmark(benchmark_of(found.terms), given))
    if allowed is not None:
        allowed(submission)
    if sha256(content).hexdigest() != submission.digest:
        raise FarshiftError(f"{file} changed while it was being checked: hand it in again")
    if not submission.team_key:
        raise NotTaken(
            f"{file} is not signed: farshift team --create makes your team's key, "
            "and farshift board sealed answer signs with it"
        )
    with board.locked():
        records = board.ledger.records()
        found = windows(records)[found.name]
        for record in records:
            mine = record.kind == "submitted" and record.body.get("window") == found.name
            if mine and record.body["submission"] == submission.digest:
                return Receipt(board.ledger.key, record, rotations=_before(records, record))
        _require_open(found, clock())
        _require_first(found, submission.team_key)
        files = {Places(found.name).answers(submission.digest): content}
        body = {
            "window": found.name,
            "submission": submission.digest,
            "team": submission.team,
            "note": submission.note,
            "model": entry.model,
            "signed_by": submission.team_key,
            "entries": [],
            "files": digests(files),
        }
        (added,) = board.enter([("submitted", body)], files)
    return Receipt(board.ledger.key, added, new=True, rotations=_before(records, added))


def _before(records: Sequence[Record], record: Record) -> tuple[Record, ...]:
    """The rotations of the board's key before a record."""
    return tuple(one for one in rotations(records) if one.seq < record.seq)


def _require_open(window: Window, now: datetime) -> None:
    state = window.state(now)
    if state != "open" or window.closed is not None:
        raise NotTaken(
            f"window {window.name} takes answers from {window.terms.opens} to {window.terms.closes}: it is {state} now"
        )


def _require_first(window: Window, key: str) -> None:
    for digest, body in window.answers.items():
        if body.get("signed_by") == key:
            raise NotTaken(
                f"the key {fingerprint(key)} signed answers to window {window.name}, taken at {window.times[digest]} "
                f"({digest[:12]}..): one submission is taken of each key"
            )
