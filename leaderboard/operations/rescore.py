"""Rescoring: score every entry of an older scorer again from its stored predictions; both scores stay."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...benchmarks.scoring.record import Score
from ...core.errors import FarshiftError, UnknownName
from ...core.progress import report_progress
from ..entries import Entry, read_valid_entries
from ..ledger.book import Event
from ..submission.validate import validate_submission
from .submit import extract_headline_values, make_score_body, score_entry

if TYPE_CHECKING:
    from ..board import Board


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
        try:
            old = _is_old(known, entered)
        except FarshiftError as error:
            report.left.append(f"{entered}: {error}")
        else:
            if old:
                todo.setdefault(entered.submission, []).append(entered)
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


def _is_old(known: dict[str, Benchmark], entered: Entry) -> bool:
    """Whether an entry's newest score is by an older scorer than this version's. Raises `FarshiftError` if it has
    another protocol or manifest than this version, which rescoring cannot change."""
    if not entered.scores:
        return False
    identity = entered.scores[-1].entry_identity
    if entered.benchmark not in known:
        raise UnknownName("benchmark", entered.benchmark, known)
    benchmark = known[entered.benchmark]
    if benchmark.identity(entered.budget, entered.steps, entered.selection) == identity:
        return False
    if benchmark.made_under(identity, entered.budget, entered.steps, entered.selection) is None:
        raise FarshiftError("made for another protocol or manifest than this version's: run it again")
    return True


def _commit_scores(board: Board, old_entries: list[Entry], scores: list[Score]) -> list[dict[str, Any]]:
    events: list[Event] = []
    files: dict[str, bytes] = {}
    for old_entry, score in zip(old_entries, scores, strict=True):
        before = old_entry.scores[-1]
        body, content = make_score_body(old_entry.entry, score)
        body["replaces"] = before.scorer
        body["before"] = extract_headline_values(Score.from_dict(json.loads(board.stored(before))))
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
