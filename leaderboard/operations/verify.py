"""Verification of a board or an export by anybody: checks the ledger's chain, and recomputes all scores from the
submissions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy as shallow_copy
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from ...benchmarks.benchmark import load_benchmarks
from ...benchmarks.scoring.record import Score
from ...core.canonical import compute_identity
from ...core.documents import read_json
from ...core.engines import Needs, map_jobs
from ...core.errors import BadData, BadSubmission, FarshiftError, Unavailable, get_first_line
from ...core.files import compute_file_sha256
from ...core.progress import report_progress
from ...core.text import format_count
from ..board import Board
from ..board_view import BoardView
from ..entries import Entry, get_submission_path, read_entries
from ..ledger import Record
from ..ledger.heads import find_history_conflicts, remember_history
from ..ledger.record import find_chain_problems
from ..sealed.verify import verify_sealed
from ..storage.board_files import find_file_problems, list_named_files, list_public_files
from ..storage.readers import open_board
from ..submission.validate import Submission, ValidRun, validate_submission
from ..tables.table import explain_outdated
from .submit import extract_headline_values, make_entry_name, make_run_item, score_entry

MANY = 4
"""Minimum number of submissions for several processes."""


@dataclass
class Verification:
    """The results of a verification: entries, how many of them are `verified` and how many could not be recomputed
    here, every difference, and each reason why something could not be recomputed.

    records, head: the number of records, and the hash of the last one: with this hash a later verification detects
    removed records. key: the board's public key. notes: information that is not a difference."""

    entries: int = 0
    verified: int = 0
    entries_not_recomputed: int = 0
    records: int = 0
    head: str = ""
    key: str = ""
    differences: list[str] = field(default_factory=list)
    not_recomputed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list, compare=False)

    @property
    def is_complete(self) -> bool:
        """Whether everything was recomputed and agrees with the board."""
        return not self.differences and not self.not_recomputed


def verify_at(location: str, head: str | None = None, key: str | None = None, *, workers: int = 1) -> Verification:
    """Verify the board at a location; see `verify_board`."""
    with open_board(location) as board:
        return verify_board(board, head, key, workers=workers)


def verify_board(
    board: BoardView,
    head: str | None = None,
    key: str | None = None,
    *,
    workers: int = 1,
) -> Verification:
    """Recompute everything: the chain, each signature, each file's digest, each score from its predictions, and each
    window.

    head: the hash of a record, key: the board's public key, both known from an earlier verification; workers: the
    number of processes, 0 for one a core. The history is stored (`ledger/heads.py`) and compared with the one that this
    user saw last."""
    with _open_stored(board) as copy:
        records, unread = copy.read()
        result = Verification(records=len(records), key=str(copy.card.get("key")))
        result.head = records[-1].hash if records else ""
        result.differences += _verify_history(copy, records, unread, head, key, result.notes)
        result.differences += find_file_problems(records)
        entries, problems = read_entries(records)
        result.entries = len(entries)
        result.differences += problems
        files = _verify_files(copy, records, result)
        _verify_entries(list(entries.values()), files, workers, result)
        _verify_windows(records, files, result)
        result.notes += _describe_replaced_scores(list(entries.values()))
        named = list_named_files(records)
        folders = {path.split("/")[0] for path in named} | {"submissions", "scores"}
        strays = [path for path in copy.strays(folders) if path not in named]
        result.differences += [f"{path} is not named in any record" for path in strays]
        return result


def _verify_history(
    copy: BoardView, records: list[Record], unread: list[str], head: str | None, known_key: str | None, notes: list[str]
) -> list[str]:
    """Check board.toml and the ledger itself, and compare it with the history seen before. Returns the differences."""
    key, problems = str(copy.card.get("key")), list(unread)
    if known_key is not None and known_key != key:
        problems.append(f"board.toml has the key {key}, not {known_key}: this is another board, or a forged copy")
    if records and (opening := records[0].body.get("key")) != key:
        problems.append(f"board.toml has the key {key}, but the board was opened with {opening}")
    if records and (name := records[0].body.get("name")) != copy.card.get("name"):
        problems.append(f"board.toml has the name {copy.card.get('name')!r}, but the ledger has {name!r}")
    problems += find_chain_problems(records, key, head)
    problems = problems or find_history_conflicts(records, key, copy.address)
    if not problems and (why := remember_history(records, key, copy.address)):
        notes.append(f"this history could not be stored for the next verification: {why}")
    return problems


def _verify_files(copy: BoardView, records: list[Record], result: Verification) -> dict[str, Path]:
    """Check every named file against its digest. Returns the local paths of those that match the ledger."""
    files = {}
    expected = list_named_files(records) if copy.has_private_files else list_public_files(records)
    for path, digest in expected.items():
        try:
            file = copy.file(path)
        except (Unavailable, BadData) as error:
            result.differences.append(f"{path} could not be read: {error}")
            continue
        if file is None:
            result.differences.append(f"{path} is missing")
        elif compute_file_sha256(file) != digest:
            result.differences.append(f"{path} was changed: its sha256 differs from the ledger's")
        else:
            files[path] = file
    return files


def _verify_entries(entries: Sequence[Entry], files: dict[str, Path], workers: int, result: Verification) -> None:
    """Compare every entry with its recomputed score."""
    known = load_benchmarks()
    older = {
        entry.entry: explain_outdated(known, entry, entry.scores[-1].entry_identity)[0]
        for entry in entries
        if entry.scores
    }
    submissions: dict[str, list[Entry]] = {}
    for entry in entries:
        path = get_submission_path(entry.submission)
        if older.get(entry.entry) == "" and path in files:  # a missing or changed file is reported already
            submissions.setdefault(path, []).append(entry)
    jobs = [(files[path], group) for path, group in submissions.items()]
    parallel = workers != 1 and len(jobs) >= MANY
    recomputed = map_jobs(_recompute, jobs, Needs(workers=workers, threads=1)) if parallel else map(_recompute, jobs)
    differences: dict[str, list[str]] = {}
    unavailable: dict[str, list[Entry]] = {}
    for number, ((_, group), (problems_by_entry, why)) in enumerate(zip(jobs, recomputed, strict=True)):
        differences |= problems_by_entry
        if why:
            unavailable.setdefault(why, []).extend(group)
        report_progress("recomputing", number + 1, len(jobs))
    for entry in entries:
        if why := older.get(entry.entry, ""):
            unavailable.setdefault(why, []).append(entry)
        problems = _find_inconsistencies(entry, files) + differences.get(entry.entry, [])
        result.verified += entry.entry in differences and not problems
        result.differences += [f"{entry}: {problem}" for problem in problems]
    for why, those in unavailable.items():
        more = f" and {format_count(len(those) - 1, 'other entry', 'other entries')}" if len(those) > 1 else ""
        result.not_recomputed.append(f"{those[0]}{more}: {why}")
        result.entries_not_recomputed += len(those)


def _recompute(job: tuple[Path, Sequence[Entry]]) -> tuple[dict[str, list[str]], str]:
    """Recompute entries of one submission from its file. Returns the differences of each entry by name, and why nothing
    could be recomputed, if so."""
    file, entries = job
    runs = sorted({entry.run for entry in entries})
    try:
        submission = validate_submission(file, set(runs))
        by_number = dict(zip(runs, submission.entries, strict=True))
        return {entry.entry: _find_differences(entry, submission, by_number[entry.run]) for entry in entries}, ""
    except BadSubmission as error:
        return {entry.entry: [f"its submission is no longer valid: {error}"] for entry in entries}, ""
    except FarshiftError as error:
        return {}, str(error)


def _find_differences(entry: Entry, submission: Submission, run: ValidRun) -> list[str]:
    """Differences between an entry's records and its submission."""
    stated = {name: getattr(submission.card, name) for name in ("name", "team", "choose", "note")}
    submitted = stated | {"team_key": submission.team_key} | make_run_item(entry.entry, entry.run, run)
    problems = [
        f"its {name} is {getattr(entry, name)!r} in the ledger but {value!r} in the submission"
        for name, value in submitted.items()
        if getattr(entry, name) != value
    ]
    try:
        score = score_entry(run)
    except Unavailable:
        raise
    except FarshiftError as error:
        return [*problems, f"can no longer be scored: {error}"]
    newest = entry.scores[-1]
    if score.scorer != newest.scorer:
        problems.append(f"the ledger names scorer {newest.scorer}, but this identity belongs to scorer {score.scorer}")
    if compute_identity(score.to_dict()) != newest.digest:
        problems.append("its recomputed score differs from the ledger")
    return problems


def _find_inconsistencies(entry: Entry, files: Mapping[str, Path]) -> list[str]:
    """Contradictions between an entry's records and the ledger or the stored scores."""
    if not entry.scores:
        return ["was submitted but never scored"]
    problems = []
    first = entry.scores[0].entry_identity
    if make_entry_name(entry.submission, entry.run, first) != entry.entry:
        problems.append("its name does not match its submission, run and identity")
    for score in entry.scores:
        if list(score.files) != [score.path]:
            problems.append(f"its record does not name exactly {score.path}")
    for before, after in zip(entry.scores, entry.scores[1:], strict=False):
        for which, score in (("before", before), ("after", after)):
            if score.path not in files:
                continue
            values = extract_headline_values(Score.from_dict(read_json(files[score.path], dict, score.path)))
            if values != getattr(after, which):
                problems.append(f"the value {which} its rescoring by scorer {after.scorer} differs from {score.path}")
    return problems


def _verify_windows(records: Sequence[Record], files: dict[str, Path], result: Verification) -> None:
    try:
        differences, not_recomputed = verify_sealed(files, records)
    # Records are untrusted: an exception counts as a difference.
    except (FarshiftError, ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        differences = [f"sealed windows cannot be read: {type(error).__name__}: {get_first_line(error)}"]
        not_recomputed = []
    result.differences += differences
    result.not_recomputed += not_recomputed
    kinds = Counter(record.kind for record in records if "window" in record.body)
    if kinds and not differences and not not_recomputed:
        answers = format_count(kinds["submitted"], "answer")
        result.notes.append(f"{format_count(kinds['window_opened'], 'sealed test')} verified, with {answers}")


def _describe_replaced_scores(entries: Sequence[Entry]) -> list[str]:
    """Describe replaced scores, for which only digests are checked."""
    older = Counter(score.scorer for entry in entries for score in entry.scores[:-1])
    return [
        f"{count} scores by scorer {scorer}, replaced by newer ones, are compared by their digests only"
        for scorer, count in sorted(older.items())
    ]


@contextmanager
def _open_stored(board: BoardView) -> Iterator[BoardView]:
    """The board, within the context; one with its files in an object store reads them from there, whatever copies its
    folder has."""
    if not isinstance(board, Board) or board.objects is None:
        yield board
    else:
        board.settle()
        with TemporaryDirectory(prefix="farshift-board-") as folder:
            stored = shallow_copy(board)
            stored.path = Path(folder)
            yield stored
