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
from ...core.canonical import canonical_json, identity_of
from ...core.errors import BadSubmission, FarshiftError, UnknownName
from ..board import Board
from ..board_view import derived_here
from ..challenges import Challenge, ChallengeBody, challenge_path, read_challenges
from ..entries import Entry, Standing, entries, lacking, submission_path
from ..ledger import Record
from ..storage.board_files import digests
from ..submission.pack import pack
from ..submission.validate import ValidRun, check
from ..tables.row_scores import EntryRows, rows_of, rows_of_entries, rows_place, unpacked
from .recompute import Computed

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
    if (submission.team, submission.note) != (team, reason):
        raise FarshiftError(
            f"{again} says team {submission.team!r} and note {submission.note!r}: a packed challenge says who files it "
            "and why (farshift pack --team WHO --note WHY); or hand in the run's folder"
        )
    if run.digest == entries(board.ledger.records())[entry].run_digest:
        raise FarshiftError(f"{again} is the run behind entry {entry} itself: a challenge is another run of the model")
    score = score_predictions(run.benchmark, run.predictions, run).to_dict()
    body = {
        "challenge": challenge_name(entry, submission.digest),
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


def read_challenge_bodies(records: Sequence[Record]) -> tuple[list[ChallengeBody], list[str]]:
    """The bodies of all challenges, and what is wrong with the records of others."""
    found, problems = [], []
    for record in records:
        if record.kind == "challenged" and "challenge" in record.body:
            try:
                found.append(ChallengeBody.model_validate(record.body))
            except ValidationError as error:
                problems.append(lacking(record, error))
    return found, problems


def verify_challenges(
    records: Sequence[Record], made: Mapping[str, Computed], entered: Mapping[str, Entry]
) -> tuple[list[str], list[str]]:
    """What is wrong with the challenges in the ledger's records: score and difference, computed again, team and reason,
    the entry, the replies; and what could not be computed again here, with why. made: what was computed, by the path of
    its file; entered: the entries by name."""
    differences: list[str] = []
    not_recomputed: list[str] = []
    seen: set[str] = set()
    for record in records:
        if record.kind != "challenged":
            continue
        if "answers" in record.body:
            differences += _reply_problems(record, seen)
        if "challenge" not in record.body:
            continue
        try:
            body = ChallengeBody.model_validate(record.body)
        except ValidationError:
            continue  # named where it was read
        name = f"challenge {body.challenge} of entry {body.entry}"
        wrong, unsure = _verify_challenge(body, made, entered)
        if body.challenge in seen:
            wrong.append(f"is filed a second time (record {record.seq})")
        seen.add(body.challenge)
        differences += [f"{name}: {problem}" for problem in wrong]
        not_recomputed += [f"{name}: {why}" for why in unsure]
    return differences, not_recomputed


def _reply_problems(record: Record, seen: set[str]) -> list[str]:
    problems = [
        f"record {record.seq} lacks what a reply to a challenge has ({name})"
        for name in ("by", "note")
        if not isinstance(record.body.get(name), str)
    ]
    if record.body["answers"] not in seen:
        problems.append(f"record {record.seq} replies to {str(record.body['answers'])[:40]!r}, which was never filed")
    return problems


def _verify_challenge(
    body: ChallengeBody, made: Mapping[str, Computed], entered: Mapping[str, Entry]
) -> tuple[list[str], list[str]]:
    """What is wrong with one challenge, and what of it could not be computed here."""
    if body.entry not in entered:
        return ["its entry was never submitted"], []
    entry = entered[body.entry]
    wrong, unsure = [], []
    if body.challenge != challenge_name(body.entry, body.submission):
        wrong.append("its name is not that of its entry and submission")
    again = made.get(challenge_path(body.submission))
    if again is None:
        return wrong, []  # its file is missing or was changed, which is named
    if again.unavailable or not again.runs:
        return ([*wrong, f"its file no longer validates: {again.invalid}"], []) if again.invalid else (
            wrong, [again.unavailable]
        )  # fmt: skip
    for what, said, is_ in (("team", body.team, again.said["team"]), ("reason", body.reason, again.said["note"])):
        if said != is_ and is_:
            wrong.append(f"its {what} is {said!r} in the ledger and {is_!r} in its file")
        elif said != is_:
            unsure.append(f"its {what} is in the ledger only, and not in its file")
    run = again.runs[0]
    if run["item"]["run_digest"] == entry.run_digest:
        wrong.append("is the run of the entry itself")
    if run["identity"] != body.score.get("entry_identity"):
        return wrong, [*unsure, "of an older identity, which this version does not score"]
    if run.get("score") != identity_of(body.score):
        wrong.append("its score, computed again, differs from the ledger")
    first = made.get(submission_path(entry.submission))
    rows = [
        rows_place(derived_here(), body.entry, entry.submission, str(run["identity"])),
        rows_place(derived_here(), body.challenge, body.submission, str(run["identity"])),
    ]
    if (
        first is None
        or "rows" not in first.runs.get(entry.run, {})
        or "rows" not in run
        or not all(map(Path.is_file, rows))
    ):
        return wrong, [*unsure, "its difference to the entry, which cannot be scored here"]
    if canonical_json(_difference_of(*(unpacked(place.read_bytes()) for place in rows))) != canonical_json(
        body.difference
    ):
        wrong.append("its difference to the entry, computed again, is another than in the ledger")
    return wrong, unsure


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
    return _difference_of(found[challenged.entry], again)


def _difference_of(entry: EntryRows, again: EntryRows) -> dict[str, Any]:
    single = min(len(entry.ood.per_seed), len(again.ood.per_seed)) == 1
    return {
        "id": judged(paired_difference(again.id, entry.id), single),
        "ood": judged(paired_difference(again.ood, entry.ood), single),
        "gap": judged(difference_of_gaps((again.id, again.ood), (entry.id, entry.ood)), single),
    }


def challenge_name(entry: str, submission: str) -> str:
    """A challenge's name: 16 hexadecimal digits over the entry and the file."""
    return identity_of({"entry": entry, "submission": submission})[:16]
