"""Challenges: somebody ran an entry's model again and got other scores.

A challenge is a run of the same model on the same benchmark under the same protocol, submitted by anybody. It is
validated and scored like a submission, stored in `challenges/<sha256>.zip`, and shown beside the entry with the paired
difference and its interval. It never replaces the entry, has no place in a table, and can be replied to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from ...benchmarks.comparison.compare import judged
from ...benchmarks.scoring.score import score_predictions
from ...benchmarks.statistics.interval import difference_of_gaps, paired_difference
from ...core.canonical import identity_of
from ...core.errors import BadSubmission, FarshiftError, Unavailable, UnknownName
from ..board import Board
from ..challenges import Challenge, ChallengeBody, challenge_path, read_challenges
from ..entries import Standing, entries, lacking
from ..ledger import Record
from ..storage.board_files import digests
from ..submission.pack import pack
from ..submission.validate import ValidRun, check
from ..tables.row_scores import EntryRows, rows_of, rows_of_entries

MAX_CHARACTERS = 2000
"""Of a reason or a reply."""


def challenge(board: Board, entry: str, again: Path | str, team: str, reason: str) -> tuple[Challenge, bool]:
    """File a challenge against an entry: `again` is a run folder or a packed submission of one run. Returns it, and
    whether it is new.

    Raises `BadSubmission` where the file is not a valid submission, and `FarshiftError` where it is of another
    benchmark, protocol or model, holds the same predictions as the entry, or where team or reason are missing."""
    _require_text("a team", team)
    _require_text("a reason", reason)
    challenged = _standing(board, entry)
    with TemporaryDirectory() as folder:
        file = Path(again)
        if file.is_dir():
            file = pack([file], Path(folder) / "challenge.zip", team=team, note=reason)
        content = file.read_bytes() if file.is_file() else b""
        submission = check(file)
    run = _one_run(submission.entries, challenged, str(again))
    if run.digest == entries(board.ledger.records())[entry].run_digest:
        raise FarshiftError(f"{again} is the run behind entry {entry} itself: a challenge is another run of the model")
    score = score_predictions(run.benchmark, run.predictions, run).to_dict()
    body = {
        "challenge": identity_of({"entry": entry, "submission": submission.digest})[:16],
        "entry": entry,
        "team": team,
        "reason": reason,
        "submission": submission.digest,
        "score": score,
        "difference": _difference(board, challenged, rows_of(run)),
    }
    name = str(body["challenge"])
    files = {challenge_path(submission.digest): content}
    with board.locked():
        if old := _challenges(board).get(name):
            return old, False
        board.enter([("challenged", body | {"files": digests(files)})], files)
    return _challenges(board)[name], True


def reply(board: Board, challenge: str, by: str, note: str) -> Challenge:
    """Reply to a challenge with a note, which is shown beside it."""
    _require_text("who replies", by)
    _require_text("a note", note)
    with board.locked():
        known = _challenges(board)
        if challenge not in known:
            raise UnknownName("challenge", challenge, known)
        board.enter([("challenged", {"answers": challenge, "by": by, "note": note})], {})
    return _challenges(board)[challenge]


def _challenges(board: Board) -> dict[str, Challenge]:
    return {one.challenge: one for one in read_challenges(board.ledger.records())}


def verify_challenges(folder: Path, records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """What is wrong with the scores of the challenges in a board's folder, or an export of it, by its ledger's records:
    each computed again from its stored file (whose digest the caller has compared with its record); and what could not
    be computed again here, with why."""
    differences: list[str] = []
    not_recomputed: list[str] = []
    for record in records:
        if record.kind != "challenged" or "challenge" not in record.body:
            continue
        try:
            body = ChallengeBody.model_validate(record.body)
        except ValidationError as error:
            differences.append(lacking(record, error))
            continue
        name = f"challenge {body.challenge} of entry {body.entry}"
        try:
            run = _run_of_score(check(folder / challenge_path(body.submission)).entries, body.score)
            if run is None:
                not_recomputed.append(f"{name}: of an older identity, which this version does not score")
            elif score_predictions(run.benchmark, run.predictions, run).to_dict() != body.score:
                differences.append(f"{name}: its score, computed again, differs from the ledger")
        except Unavailable as error:
            not_recomputed.append(f"{name}: {error}")
        except FarshiftError as error:
            differences.append(f"{name}: its file no longer validates: {error}")
    return differences, not_recomputed


def _require_text(what: str, text: str) -> None:
    if not text.strip() or len(text) > MAX_CHARACTERS:
        raise FarshiftError(f"a challenge needs {what}: 1 to {MAX_CHARACTERS} characters")


def _standing(board: Board, entry: str) -> Standing:
    found = {one.entry: one for one in board.standings()}
    if entry not in found:
        raise UnknownName("entry on this board", entry, found)
    return found[entry]


def _run_of_score(runs: Sequence[ValidRun], score: Mapping[str, Any]) -> ValidRun | None:
    """The run of a submission that has the model and identity of a score."""
    for entry in runs:
        if (entry.model, entry.entry_identity) == (score.get("model"), score.get("entry_identity")):
            return entry
    return None


def _one_run(runs: Sequence[ValidRun], challenged: Standing, file: str) -> ValidRun:
    run = _run_of_score(runs, challenged.score.to_dict())
    if run is None:
        score = challenged.score
        steps = f", {score.steps} steps" if score.steps else ""
        raise FarshiftError(
            f"{file} has no run of {score.model} on {score.benchmark} (budget {score.budget}{steps}, chosen "
            f"by {score.selection}): a challenge is a run of the same model under the same protocol"
        )
    if len(runs) > 1:
        raise BadSubmission(f"{file} has {len(runs)} runs: a challenge is one run, pack it alone")
    return run


def _difference(board: Board, challenged: Standing, again: EntryRows) -> dict[str, Any]:
    """The second run minus the entry, paired by rows: ID, OOD and gap."""
    found, without = rows_of_entries(board, [challenged])
    if challenged.entry in without:
        raise FarshiftError(f"entry {challenged.entry} cannot be compared: {without[challenged.entry]}")
    entry = found[challenged.entry]
    single = min(len(challenged.score.seeds), len(again.ood.per_seed)) == 1
    return {
        "id": judged(paired_difference(again.id, entry.id), single),
        "ood": judged(paired_difference(again.ood, entry.ood), single),
        "gap": judged(difference_of_gaps((again.id, again.ood), (entry.id, entry.ood)), single),
    }
