"""Challenges: somebody ran an entry's model again, and other numbers came out.

A challenge is a run of the same model on the same benchmark under the same protocol, handed in by anybody. It is
validated and scored like a submission, kept in `challenges/<sha256>.zip`, and shown beside the entry with the paired
difference and its interval; it never replaces the entry, takes no place in a table, and may be answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from ...benchmarks.comparison.compare_full import judged
from ...benchmarks.scoring.score import score_predictions
from ...benchmarks.statistics.interval import difference_of_gaps, paired_difference
from ...core.canonical import identity_of
from ...core.errors import BadSubmission, FarshiftError, Unavailable, UnknownName
from ..board import Board
from ..entries import Body, Hex16, Hex64, Standing, entries, lacking
from ..ledger import Record
from ..storage.board_files import digests
from ..submission.pack import pack
from ..submission.validate import Entry, check
from ..tables.row_scores import EntryRows, rows_of, rows_of_entries

MAX_WORDS = 2000
"""Characters of a reason or an answer."""


class _Filed(Body):
    """What the record of a challenge has at least; a stranger's export may have anything."""

    challenge: str = Hex16
    entry: str = Hex16
    team: str
    reason: str
    submission: str = Hex64
    score: dict[str, Any]
    difference: dict[str, Any]


@dataclass(frozen=True)
class Challenge:
    """A challenge as it stands: against which entry, by whom, why, what the run again scored, and the answers."""

    challenge: str
    entry: str
    team: str
    reason: str
    time: str
    submission: str
    score: dict[str, Any]
    difference: dict[str, Any]
    answers: tuple[dict[str, str], ...]

    def record(self) -> dict[str, Any]:
        """Plain JSON."""
        return {**self.__dict__, "answers": list(self.answers)}


def challenge(board: Board, entry: str, again: Path | str, team: str, reason: str) -> tuple[Challenge, bool]:
    """File a challenge against an entry: `again` is a run folder or a packed submission of one run. Returns it, and
    whether it is new.

    Raises `BadSubmission` where the file is none, and `FarshiftError` where it is of another benchmark, protocol or
    model, holds the very predictions of the entry, or where team or reason are missing."""
    _hold_words("a team", team)
    _hold_words("a reason", reason)
    challenged = _standing(board, entry)
    with TemporaryDirectory() as folder:
        file = Path(again)
        if file.is_dir():
            file = pack([file], Path(folder) / "challenge.zip", team=team, note=reason)
        content = file.read_bytes() if file.is_file() else b""
        submission = check(file)
    run = _one_run(submission.entries, challenged, str(again))
    if run.digest == entries(board.ledger.records())[entry].item.run_digest:
        raise FarshiftError(f"{again} is the very run behind entry {entry}: a challenge is another run of the model")
    score = score_predictions(run.benchmark, run.predictions, run).record
    difference = _difference(board, challenged, rows_of(run))
    body = {
        "challenge": identity_of({"entry": entry, "submission": submission.digest})[:16],
        "entry": entry,
        "team": team,
        "reason": reason,
        "submission": submission.digest,
        "score": score,
        "difference": difference,
    }
    files = {challenge_path(submission.digest): content}
    with board.locked():
        known = {one.challenge: one for one in challenges(board)}
        if old := known.get(str(body["challenge"])):
            return old, False
        board.enter([("challenged", body | {"files": digests(files)})], files)
    return next(one for one in challenges(board) if one.challenge == body["challenge"]), True


def answer(board: Board, challenge: str, by: str, note: str) -> Challenge:
    """Answer a challenge with a note, which is shown beside it."""
    _hold_words("who answers", by)
    _hold_words("a note", note)
    with board.locked():
        known = {one.challenge for one in challenges(board)}
        if challenge not in known:
            raise UnknownName("challenge", challenge, known)
        board.enter([("challenged", {"answers": challenge, "by": by, "note": note})], {})
    return next(one for one in challenges(board) if one.challenge == challenge)


def challenges(board: Board) -> list[Challenge]:
    """Every challenge on a board, in the ledger's order, with its answers."""
    records = [record for record in board.ledger.records() if record.kind == "challenged"]
    answers: dict[str, list[dict[str, str]]] = {}
    for record in records:
        if "answers" in record.body:
            said = {"by": record.body["by"], "note": record.body["note"], "time": record.time}
            answers.setdefault(record.body["answers"], []).append(said)
    return [
        Challenge(
            **{name: record.body[name] for name in _TOLD},
            time=record.time,
            answers=tuple(answers.get(record.body["challenge"], ())),
        )
        for record in records
        if "challenge" in record.body
    ]


_TOLD = ("challenge", "entry", "team", "reason", "submission", "score", "difference")


def verify_challenges(folder: Path, records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """What is wrong with the scores of the challenges in a board's folder, or an export of it, by its ledger's records:
    each computed again from its stored file (whose digest the caller has held to its record); and what could not be
    computed again here, with why."""
    differences: list[str] = []
    not_recomputed: list[str] = []
    for record in records:
        if record.kind != "challenged" or "challenge" not in record.body:
            continue
        try:
            body = _Filed.model_validate(record.body)
        except ValidationError as error:
            differences.append(lacking(record, error))
            continue
        name = f"challenge {body.challenge} of entry {body.entry}"
        try:
            run = _named_run(check(folder / challenge_path(body.submission)).entries, body.score)
            if run is None:
                not_recomputed.append(f"{name}: of an older identity, which this version does not score")
            elif score_predictions(run.benchmark, run.predictions, run).record != body.score:
                differences.append(f"{name}: its score, computed again, differs from the ledger")
        except Unavailable as error:
            not_recomputed.append(f"{name}: {error}")
        except FarshiftError as error:
            differences.append(f"{name}: its file no longer validates: {error}")
    return differences, not_recomputed


def challenge_path(digest: str) -> str:
    """Where a board keeps a challenge's file."""
    return f"challenges/{digest}.zip"


def _hold_words(what: str, text: str) -> None:
    if not text.strip() or len(text) > MAX_WORDS:
        raise FarshiftError(f"a challenge needs {what}: 1 to {MAX_WORDS} characters")


def _standing(board: Board, entry: str) -> Standing:
    found = {one.entry: one for one in board.standings()}
    if entry not in found:
        raise UnknownName("entry on this board", entry, found)
    return found[entry]


def _named_run(runs: Sequence[Entry], score: dict[str, Any]) -> Entry | None:
    """The run of a submission that is of the model and identity of a score."""
    for entry in runs:
        here = entry.benchmark.identity(entry.budget, entry.steps, entry.selection)
        if (entry.model, here) == (score.get("model"), score.get("entry_identity")):
            return entry
    return None


def _one_run(runs: Sequence[Entry], challenged: Standing, file: str) -> Entry:
    run = _named_run(runs, challenged.score)
    if run is None:
        score = challenged.score
        steps = f", {score['steps']} steps" if score["steps"] else ""
        raise FarshiftError(
            f"{file} has no run of {score['model']} on {score['benchmark']} (budget {score['budget']}{steps}, chosen "
            f"by {score['selection']}): a challenge is a run of the same model under the same protocol"
        )
    if len(runs) > 1:
        raise BadSubmission(f"{file} has {len(runs)} runs: a challenge is one run, pack it alone")
    return run


def _difference(board: Board, challenged: Standing, again: EntryRows) -> dict[str, Any]:
    """The run again minus the entry, paired by rows: ID, OOD and gap."""
    found, without = rows_of_entries(board, [challenged])
    if challenged.entry in without:
        raise FarshiftError(f"entry {challenged.entry} cannot be compared: {without[challenged.entry]}")
    entry = found[challenged.entry]
    single = min(len(challenged.score["seeds"]), len(again.ood.per_seed)) == 1
    return {
        "id": judged(paired_difference(again.id, entry.id), single),
        "ood": judged(paired_difference(again.ood, entry.ood), single),
        "gap": judged(difference_of_gaps((again.id, again.ood), (entry.id, entry.ood)), single),
    }
