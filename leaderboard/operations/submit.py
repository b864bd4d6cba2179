"""Submitting: a file validated, scored from its predictions, entered in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...benchmarks.scoring.record import Score
from ...benchmarks.scoring.score import score_predictions
from ...core.canonical import identity_of
from ...core.errors import FarshiftError, NotTaken
from ...core.files import file_sha256
from ...core.progress import advance
from ..entries import Entry, entries, score_path, submission_path
from ..ledger.book import Event
from ..storage.board_files import digests
from ..submission.validate import Allowed, Submission, ValidRun, check
from ..tables.row_scores import keep_rows, rows_place
from ..teams import require_free_name

if TYPE_CHECKING:
    from ..board import Board


def submit(board: Board, file: Path | str, allowed: Allowed | None = None) -> tuple[list[str], bool]:
    """Validate, score and enter a submission. Returns its entries, and whether it is new: submitting the same file
    again changes nothing. Nothing is entered unless every run of it was scored."""
    file = Path(file)
    if allowed is None and file.is_file() and (there := _of(_entered(board), file_sha256(file))):
        return there, False
    submission = check(file)
    if allowed is not None:
        allowed(submission)
    if there := _known(board, submission, file):
        return there, False
    items: list[dict[str, Any]] = []
    events: list[Event] = []
    files: dict[str, bytes] = {}
    for number, entry in enumerate(submission.entries):
        score = scored(entry)
        name = entry_name(submission.digest, number, score.entry_identity)
        items.append(item_of(name, number, entry))
        body, content = score_body(name, score)
        events.append(("scored", body))
        files |= content
        advance("scoring", number + 1, len(submission.entries))
    zipped = {submission_path(submission.digest): _content(file, submission.digest)}
    body = {
        "submission": submission.digest,
        "name": submission.name,
        "team": submission.team,
        "note": submission.note,
        **({"team_key": submission.team_key} if submission.team_key else {}),
        **({"choose": True} if submission.choose else {}),
        "entries": items,
        "files": digests(zipped),
    }
    with board.locked():
        if there := _known(board, submission, file):  # submitted by another process meanwhile
            return there, False
        board.enter([("submitted", body), *events], files | zipped)
    _keep_rows(board, submission, [body for _, body in events])
    return [item["entry"] for item in items], True


def _keep_rows(board: Board, submission: Submission, scores: Sequence[dict[str, Any]]) -> None:
    """Keep the scores of the rows of what was entered, for the tables: whoever draws them would have to read and
    validate the submission once more."""
    for said, entry in zip(scores, submission.entries, strict=True):
        place = rows_place(board.derived, said["entry"], submission.digest, said["entry_identity"])
        with suppress(FarshiftError):  # it is entered; what is not kept is computed when it is asked for
            keep_rows(place, entry, submission.model)


def _entered(board: Board) -> list[Entry]:
    return list(entries(board.ledger.records()).values())


def _of(entered: list[Entry], digest: str) -> list[str]:
    """The entries of a submission that the board has already; none where it has not."""
    return [one.entry for one in entered if one.submission == digest]


def _known(board: Board, submission: Submission, file: Path) -> list[str]:
    """The same, of one that was read. Refuses one with a run that another submission brought."""
    # Of one reading of the ledger: between two, another process may enter this very submission.
    entered = _entered(board)
    if there := _of(entered, submission.digest):
        return there
    require_free_name(entered, submission.team, submission.team_key)
    taken = {one.run_digest: one.entry for one in entered}
    for entry in submission.entries:
        if entry.digest in taken:
            raise NotTaken(
                f"{file}: {entry.model} on {entry.benchmark.name} is the run behind entry {taken[entry.digest]} on "
                "this board already: pack the others without it"
            )
    return []


def _content(file: Path, digest: str) -> bytes:
    content = file.read_bytes()
    if sha256(content).hexdigest() != digest:
        raise FarshiftError(f"{file} changed while it was being checked: submit it again")
    return content


def scored(entry: ValidRun) -> Score:
    """An entry's score: the same bytes as offline."""
    return score_predictions(entry.benchmark, entry.predictions, entry)


def submission_scores(file: Path, selection: str | None = None) -> list[Score]:
    """The scores of all runs of a submission, in their order, as a board gives them; `BadSubmission` lists what is
    wrong with it. The selection rule is the runs' own: another one is refused."""
    if selection is not None:
        raise FarshiftError(f"{file}: a submission is scored by the rule of its runs (--selection is for run folders)")
    return [scored(entry) for entry in check(file).entries]


def entry_name(submission: str, run: int, identity: str) -> str:
    """An entry's name: 16 hexadecimal digits over the submission, the run in it and the identity that it was first
    scored under."""
    return identity_of({"submission": submission, "run": run, "identity": identity})[:16]


def item_of(name: str, run: int, entry: ValidRun) -> dict[str, Any]:
    """What the ledger says of one run of a submission."""
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


def score_body(entry: str, score: Score) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What the ledger says of an entry's score, and the file that goes with it."""
    files = {score_path(entry, score.scorer): score.json()}
    identity, scorer = score.entry_identity, score.scorer
    return {"entry": entry, "entry_identity": identity, "scorer": scorer, "files": digests(files)}, files


def values(score: Score) -> dict[str, float]:
    """The two values of a score that a table shows first."""
    return {"id": float(score.id.value), "ood": float(score.ood.value)}
