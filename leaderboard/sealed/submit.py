"""A submission to a window: a team predicts the draw, packs and signs its answers, and the board accepts one file for
each team's key while the window is open.

Answers are packed and checked like every submission, against the rows of the published draw, so that no message can
depend on a label.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...benchmarks.harness.evaluate import evaluate
from ...benchmarks.model_inputs.load import load_model_inputs
from ...benchmarks.runs.run import Run
from ...core.errors import BadSubmission, FarshiftError, SubmissionRejected
from ..board import Board
from ..board_view import BoardView
from ..ledger import Record
from ..ledger.keys import SigningKey
from ..storage.board_files import compute_digests
from ..submission.pack import Card, find_default_key, pack_runs
from ..submission.remote import RemoteBoard
from ..submission.validate import Allowed, Submission, ValidRun, validate_open_submission
from ..teams import compute_fingerprint
from ..validation.process import ReaderProcess
from .drawing import SEALED
from .published import PublishedDraw, SealedBenchmark, find_window_benchmark, make_sealed_benchmark, read_draw
from .window import Clock, Window, find_window, get_utc_time, get_window_path, parse_time, read_windows, require_open


def predict_draw(model: Any, draw: PublishedDraw | Path | str, **options: Any) -> Run:
    """Train a model on the public training rows of a window's benchmark, predict the draw, and write a run folder for
    `pack_answers`. `draw` is the folder written by `farshift board sealed draw`; the options are those of
    `farshift.evaluate`."""
    published_draw = draw if isinstance(draw, PublishedDraw) else read_draw(draw)
    public = find_window_benchmark(published_draw.terms)
    sealed = make_sealed_benchmark(public, published_draw)
    model_inputs = load_model_inputs(public)
    parts = {**model_inputs.parts, SEALED: sealed.inputs}
    return evaluate(model, sealed, model_inputs=replace(model_inputs, parts=parts), **options)


def pack_answers(
    run: Run,
    out: Path | str,
    draw: PublishedDraw | Path | str,
    team: str,
    card: Card | None = None,
    key: SigningKey | None = None,
) -> Path:
    """Pack the run that `predict_draw` wrote. `card`: the model card, as for any submission; `key`: the team's key,
    which signs the submission; by default the key in the user's home (`farshift team --create`). Raises
    `BadSubmission` with every problem that the board would find."""
    _require_team(team)
    signing = key or find_default_key()
    if signing is None:
        raise FarshiftError("submissions to a window are signed: create your team's key with farshift team --create")
    published_draw = draw if isinstance(draw, PublishedDraw) else read_draw(draw)
    sealed = make_sealed_benchmark(find_window_benchmark(published_draw.terms), published_draw)
    return pack_runs([run], out, team=team, card=card, known={sealed.name: sealed}, key=signing)


def read_window_draw(board: BoardView, window: str) -> PublishedDraw:
    """The published draw of a window, from the board's files."""
    board.file(get_window_path(window, "inputs"))
    card = board.file(get_window_path(window, "card")) or board.path / get_window_path(window, "card")
    return read_draw(card.parent)


def check_answers(file: Path | str, sealed: SealedBenchmark) -> tuple[Submission, ValidRun]:
    """Read and validate a submission to a window. Returns the submission and its only run."""
    path = Path(file)
    if not path.is_file():
        raise BadSubmission(f"{path} does not exist or is not a file")
    with path.open("rb") as content, ReaderProcess() as reader:
        submission = validate_open_submission(content, path.name, reader, known={sealed.name: sealed})
    if len(submission.entries) != 1:
        raise BadSubmission(f"{path} has {len(submission.entries)} runs: a submission to a window has exactly one")
    _require_team(submission.card.team)
    return submission, submission.entries[0]


def _require_team(team: str) -> None:
    """Refuse a submission without a team."""
    if not team.strip():
        raise SubmissionRejected("a submission to a window needs a team name: set --team")


def submit_to_board(location: str, window: str, file: Path, token: str = "") -> dict[str, Any]:
    """Submit a team's file to the board at a location. Returns the window, the file's sha256, the time at which the
    board `received` it, and whether it is `new`. Raises as `submit_answers` does."""
    from ..storage.http import is_url

    if not is_url(location):
        record, new = submit_answers(Board(location), window, file)
        received = str(record.body.get("received", record.time))
        return {"window": record.body["window"], "submission": record.body["submission"]} | {
            "received": received,
            "new": new,
        }
    if not file.is_file():
        raise FarshiftError(f"{file} does not exist or is not a file")
    return {"window": window} | RemoteBoard(location, token).submit_answers(window, file)


def submit_answers(
    board: Board,
    window: str,
    file: Path | str,
    clock: Clock = get_utc_time,
    allowed: Allowed | None = None,
    received: str = "",
) -> tuple[Record, bool]:
    """Accept a team's submission to a window. Returns the ledger's record of it, and whether it is new: submitting the
    same file again changes nothing. received: the time at which a server received it, which counts instead of the
    present time.

    A team is identified by the key that signed the submission, not by its name. Raises `FarshiftError` if the window is
    not open, the file is not signed, or the key already has a submission; `BadSubmission` with every problem of the
    file."""
    sealed_window = find_window(board.ledger.records(), window)
    arrived = parse_time(received) if received else None
    require_open(sealed_window, arrived or clock())
    content = Path(file).read_bytes() if Path(file).is_file() else b""
    published_draw = read_window_draw(board, sealed_window.name)
    submission, entry = check_answers(
        file, make_sealed_benchmark(find_window_benchmark(sealed_window.terms), published_draw)
    )
    if sha256(content).hexdigest() != submission.digest:
        raise FarshiftError(f"{file} changed while it was being checked: submit it again")
    if not submission.team_key:
        raise SubmissionRejected(
            f"{file} is not signed: create your team's key with farshift team --create, "
            "and sign with farshift board sealed answer"
        )
    with board.locked():
        if allowed is not None:
            allowed(submission)
        records = board.ledger.records()
        for record in records:
            known = (record.body.get("window"), record.body.get("submission"))
            if record.kind == "submitted" and known == (sealed_window.name, submission.digest):
                return record, False
        sealed_window = read_windows(records)[sealed_window.name]
        require_open(sealed_window, arrived or clock())
        _require_first(sealed_window, submission.team_key)
        files = {get_window_path(sealed_window.name, "answers", submission.digest): content}
        body = {
            "window": sealed_window.name,
            "submission": submission.digest,
            "team": submission.card.team,
            "note": submission.card.note,
            "model": entry.model,
            "signed_by": submission.team_key,
            "entries": [],
            "files": compute_digests(files),
            **({"received": received} if received else {}),
        }
        (added,) = board.enter([("submitted", body)], files)
    return added, True


def _require_first(window: Window, key: str) -> None:
    for digest, body in window.answers.items():
        if body.get("signed_by") == key:
            raise SubmissionRejected(
                f"the key {compute_fingerprint(key)} already has a submission to window {window.name}, accepted at "
                f"{window.times[digest]} "
                f"({digest[:12]}..): only one is accepted for each key"
            )
