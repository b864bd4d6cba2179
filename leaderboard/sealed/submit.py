"""Accepting submissions to a window: valid, signed, one for each team's key, while the window is open. The board
returns a receipt, which contains no scores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError, SubmissionRejected
from ..ledger import Record
from ..ledger.rotation import list_rotations
from ..storage.board_files import compute_digests
from ..submission.validate import Allowed
from ..teams import compute_fingerprint
from .answers import check_answers, read_window_draw
from .benchmark import make_sealed_benchmark
from .draw_folder import find_window_benchmark
from .receipt import Receipt
from .times import Clock, get_utc_time
from .window import Window, WindowPaths, find_window, read_windows

if TYPE_CHECKING:
    from ..board import Board


def submit_answers(
    board: Board, window: str, file: Path | str, clock: Clock = get_utc_time, allowed: Allowed | None = None
) -> Receipt:
    """Accept a team's submission to a window. Submitting the same file again changes nothing and returns its receipt.

    A team is identified by the key that signed the submission, not by its name. Raises `FarshiftError` if the window is
    not open, the file is not signed, or the key already has a submission; `BadSubmission` with every problem of the
    file."""
    sealed_window = find_window(board.ledger.records(), window)
    _require_open(sealed_window, clock())
    content = Path(file).read_bytes() if Path(file).is_file() else b""
    published_draw = read_window_draw(board, sealed_window.name)
    submission, entry = check_answers(
        file, make_sealed_benchmark(find_window_benchmark(sealed_window.terms), published_draw)
    )
    if allowed is not None:
        allowed(submission)
    if sha256(content).hexdigest() != submission.digest:
        raise FarshiftError(f"{file} changed while it was being checked: submit it again")
    if not submission.team_key:
        raise SubmissionRejected(
            f"{file} is not signed: create your team's key with farshift team --create, "
            "and sign with farshift board sealed answer"
        )
    with board.locked():
        records = board.ledger.records()
        sealed_window = read_windows(records)[sealed_window.name]
        for record in records:
            is_same_window = record.kind == "submitted" and record.body.get("window") == sealed_window.name
            if is_same_window and record.body["submission"] == submission.digest:
                return Receipt(board.ledger.key, record, rotations=_list_earlier_rotations(records, record))
        _require_open(sealed_window, clock())
        _require_first(sealed_window, submission.team_key)
        files = {WindowPaths(sealed_window.name).answers(submission.digest): content}
        body = {
            "window": sealed_window.name,
            "submission": submission.digest,
            "team": submission.team,
            "note": submission.note,
            "model": entry.model,
            "signed_by": submission.team_key,
            "entries": [],
            "files": compute_digests(files),
        }
        (added,) = board.enter([("submitted", body)], files)
    return Receipt(board.ledger.key, added, new=True, rotations=_list_earlier_rotations(records, added))


def _list_earlier_rotations(records: Sequence[Record], record: Record) -> tuple[Record, ...]:
    """The rotations of the board's key before a record."""
    return tuple(rotation for rotation in list_rotations(records) if rotation.seq < record.seq)


def _require_open(window: Window, now: datetime) -> None:
    state = window.state(now)
    if state != "open" or window.closed is not None:
        raise SubmissionRejected(
            f"window {window.name} accepts files from {window.terms.opens} to {window.terms.closes}: it is {state} now"
        )


def _require_first(window: Window, key: str) -> None:
    for digest, body in window.answers.items():
        if body.get("signed_by") == key:
            raise SubmissionRejected(
                f"the key {compute_fingerprint(key)} already has a submission to window {window.name}, accepted at "
                f"{window.times[digest]} "
                f"({digest[:12]}..): only one is accepted for each key"
            )
