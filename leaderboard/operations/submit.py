"""What adds records to a board's ledger; nothing is ever deleted.

A submission is validated, scored from its predictions and appended. Rescoring scores every entry of an older scorer
again from its stored predictions; both scores stay. An entry is withdrawn by its team or removed by the board; its
submission and scores stay and can be verified. Reference entries are always ranked, such as the baselines of a whole
catalogue, which all have one team; entries are declared, not a team, because others may use the same team name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...benchmarks.scoring.record import Score
from ...benchmarks.scoring.score import score_predictions
from ...core.canonical import compute_identity
from ...core.errors import FarshiftError, SubmissionRejected, UnknownName
from ...core.files import compute_file_sha256
from ...core.progress import report_progress
from ..board import Board
from ..entries import Entry, get_score_path, get_submission_path, read_valid_entries
from ..ledger.book import Event
from ..storage.board_files import compute_digests
from ..storage.http import is_url
from ..submission.remote import RemoteBoard
from ..submission.validate import Allowed, Submission, ValidRun, validate_submission
from ..tables.row_scores import make_rows_path, store_rows
from ..tables.table import explain_outdated
from ..teams import require_free_name


def submit_at(location: str, file: Path, token: str = "") -> tuple[list[str], bool]:
    """Submit a file to the board at a location. Returns the entries, and whether they are new. token: the access token
    for a board behind a URL; by default the user's."""
    return RemoteBoard(location, token).submit(file) if is_url(location) else submit_runs(Board(location), file)


def submit_runs(
    board: Board, file: Path | str, allowed: Allowed | None = None, known: Mapping[str, Benchmark] | None = None
) -> tuple[list[str], bool]:
    """Validate, score and enter a submission. Returns its entries, and whether it is new: submitting the same file
    again changes nothing. Nothing is entered unless every run was scored. known: the benchmarks, by default all."""
    file = Path(file)
    if allowed is None and file.is_file():
        digest = compute_file_sha256(file)
        if known_names := [entry.entry for entry in _list_entries(board) if entry.submission == digest]:
            return known_names, False
    submission = validate_submission(file, known=known)
    if allowed is not None:
        allowed(submission)
    if known_names := _find_duplicate_entries(board, submission, file):
        return known_names, False
    items: list[dict[str, Any]] = []
    events: list[Event] = []
    files: dict[str, bytes] = {}
    for number, entry in enumerate(submission.entries):
        score = score_entry(entry)
        name = make_entry_name(submission.digest, number, score.entry_identity)
        items.append(make_run_item(name, number, entry))
        body, content = make_score_body(name, score)
        events.append(("scored", body))
        files |= content
        report_progress("scoring", number + 1, len(submission.entries))
    zipped = {get_submission_path(submission.digest): _read_content(file, submission.digest)}
    body = {
        "submission": submission.digest,
        "name": submission.card.name,
        "team": submission.card.team,
        "note": submission.card.note,
        **({"team_key": submission.team_key} if submission.team_key else {}),
        **({"choose": True} if submission.card.choose else {}),
        "entries": items,
        "files": compute_digests(zipped),
    }
    with board.locked():
        if known_names := _find_duplicate_entries(board, submission, file):  # submitted by another process meanwhile
            return known_names, False
        if allowed is not None:  # scoring takes time: a token may have been revoked meanwhile
            allowed(submission)
        board.enter([("submitted", body), *events], files | zipped)
    _store_row_scores(board, submission, [body for _, body in events])
    return [item["entry"] for item in items], True


def _store_row_scores(board: Board, submission: Submission, scores: Sequence[dict[str, Any]]) -> None:
    """Cache the row scores of new entries for the tables, which otherwise have to read and validate the submission
    again."""
    for body, entry in zip(scores, submission.entries, strict=True):
        path = make_rows_path(board.derived, body["entry"], submission.digest, body["entry_identity"])
        with suppress(FarshiftError):  # it is entered; missing row scores are computed on demand
            store_rows(path, entry, submission.card.model)


def _list_entries(board: Board) -> list[Entry]:
    return list(read_valid_entries(board.ledger.records()).values())


def _find_duplicate_entries(board: Board, submission: Submission, file: Path) -> list[str]:
    """The entries of a validated submission, as above. Refuses a submission with a run that another submission has."""
    # Uses one reading of the ledger: between two, another process may enter this submission.
    entered = _list_entries(board)
    if known_names := [entry.entry for entry in entered if entry.submission == submission.digest]:
        return known_names
    require_free_name([(entry.team, entry.team_key) for entry in entered], submission.card.team, submission.team_key)
    known_runs = {known_entry.run_digest: known_entry.entry for known_entry in entered}
    for entry in submission.entries:
        if entry.digest in known_runs:
            raise SubmissionRejected(
                f"{file}: {entry.model} on {entry.benchmark.name} is the same run as entry {known_runs[entry.digest]} "
                "on "
                "this board: pack the others without it"
            )
    return []


def _read_content(file: Path, digest: str) -> bytes:
    content = file.read_bytes()
    if sha256(content).hexdigest() != digest:
        raise FarshiftError(f"{file} changed while it was being checked: submit it again")
    return content


def score_entry(entry: ValidRun) -> Score:
    """Score an entry: the same bytes as offline."""
    return score_predictions(entry.benchmark, entry.predictions, entry)


def score_submission(file: Path, selection: str | None = None) -> list[Score]:
    """The scores of all runs of a submission, in order, as a board computes them; `BadSubmission` lists its problems.
    The selection rule is that of the runs: another one is refused."""
    if selection is not None:
        raise FarshiftError(f"{file}: a submission uses the selection rule of its runs (no --selection)")
    return [score_entry(entry) for entry in validate_submission(file).entries]


def make_entry_name(submission: str, run: int, identity: str) -> str:
    """An entry's name: 16 hexadecimal digits of a digest of the submission, the run's number and the identity of its
    first score."""
    return compute_identity({"submission": submission, "run": run, "identity": identity})[:16]


def make_run_item(name: str, run: int, entry: ValidRun) -> dict[str, Any]:
    """One run of a submission as the ledger's record describes it."""
    return {
        "entry": name,
        "run": run,
        "benchmark": entry.benchmark.name,
        "model": entry.model,
        "budget": entry.budget,
        "steps": entry.steps,
        "selection": entry.selection,
        "run_digest": entry.digest,
    }


def make_score_body(entry: str, score: Score) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The record's body for an entry's score, and the score's file."""
    files = {get_score_path(entry, score.scorer): score.json()}
    identity, scorer = score.entry_identity, score.scorer
    return {"entry": entry, "entry_identity": identity, "scorer": scorer, "files": compute_digests(files)}, files


def extract_headline_values(score: Score) -> dict[str, float]:
    """The two values of a score that a table shows: ID and OOD."""
    return {"id": float(score.id.value), "ood": float(score.ood.value)}


@dataclass
class RescoreReport:
    """The results of a rescoring: the outcome for each entry, and the entries that were left, with the reason."""

    rescored: list[dict[str, Any]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def rescore_entries(board: Board) -> RescoreReport:
    """Score every entry of an older scorer again from its stored predictions; the older scores stay. Submissions are
    processed one after another, so an interrupted rescoring can be repeated."""
    report = RescoreReport()
    known, todo = load_benchmarks(), dict[str, list[Entry]]()
    for entered in read_valid_entries(board.committed_records()).values():
        if entered.scores:
            why, scorer = explain_outdated(known, entered, entered.scores[-1].entry_identity)
            if scorer is not None:
                todo.setdefault(entered.submission, []).append(entered)
            elif why:
                report.left.append(f"{entered}: {why}")
    for number, (submission, old_entries) in enumerate(todo.items()):
        try:
            read = validate_submission(board.submission_file(submission), {old_entry.run for old_entry in old_entries})
            scores = [score_entry(entry) for entry in read.entries]
        except FarshiftError as error:
            report.left += [f"{old_entry}: {error}" for old_entry in old_entries]
        else:
            report.rescored += _commit_scores(board, old_entries, scores)
        report_progress("rescoring", number + 1, len(todo))
    return report


def _commit_scores(board: Board, old_entries: list[Entry], scores: list[Score]) -> list[dict[str, Any]]:
    events: list[Event] = []
    files: dict[str, bytes] = {}
    for old_entry, score in zip(old_entries, scores, strict=True):
        before = old_entry.scores[-1]
        body, content = make_score_body(old_entry.entry, score)
        body["replaces"] = before.scorer
        body["before"] = extract_headline_values(board.read_score(before))
        body["after"] = extract_headline_values(score)
        events.append(("rescored", body))
        files |= content
    with board.locked():
        current_entries = read_valid_entries(board.ledger.records())
        if any(len(current_entries[old_entry.entry].scores) > len(old_entry.scores) for old_entry in old_entries):
            return []  # another process has rescored them
        board.enter(events, files)
    reported_fields = ("entry", "replaces", "scorer", "before", "after")
    return [{name: body[name] for name in reported_fields} for _, body in events]


MAX_REASON = 1000


def withdraw_entry(board: Board, entry: str, reason: str, by_board: bool = False) -> None:
    """Withdraw an entry on behalf of its team, or remove it on behalf of the board, which is final."""
    kind = "removed" if by_board else "withdrawn"
    reason = " ".join(reason.split())
    if not 0 < len(reason) <= MAX_REASON or not reason.isprintable():
        raise FarshiftError(f"entry {entry}: the reason must have 1 to {MAX_REASON} printable characters")
    with board.locked():
        known_entries = read_valid_entries(board.ledger.records())
        if entry not in known_entries:
            raise UnknownName("entry", entry, known_entries)
        removal = known_entries[entry].left
        if removal is not None and removal.kind in (kind, "removed"):
            raise FarshiftError(f"{known_entries[entry]} was already {removal.kind} ({removal.reason})")
        board.enter([(kind, {"entry": entry, "reason": reason})], {})


def declare_references(board: Board, names: Sequence[str]) -> list[str]:
    """Declare entries as references. Returns those that were not references before."""
    with board.locked():
        known_entries = read_valid_entries(board.ledger.records())
        for name in names:
            if name not in known_entries:
                raise UnknownName("entry", name, known_entries)
        new = [name for name in dict.fromkeys(names) if not known_entries[name].reference]
        if new:
            board.enter([("referenced", {"declared": new})], {})
    return new
