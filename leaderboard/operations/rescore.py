"""A new scorer: every entry of an older one is scored anew from its stored predictions, and both values are kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...benchmarks.benchmark import Benchmark, benchmarks
from ...benchmarks.scoring.record import Score
from ...core.errors import FarshiftError, UnknownName
from ...core.progress import advance
from ..entries import Entry, entries
from ..ledger.book import Event
from ..submission.validate import check
from .submit import score_body, scored, values

if TYPE_CHECKING:
    from ..board import Board


@dataclass
class Rescoring:
    """What a rescoring did: what became of each entry, and which ones it had to leave, with why."""

    rescored: list[dict[str, Any]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def rescore(board: Board) -> Rescoring:
    """Score every entry of an older scorer again, from its stored predictions; the older scores are kept. Submissions
    are entered one after another: a killed rescoring goes on when repeated."""
    found = Rescoring()
    known, todo = benchmarks(), dict[str, list[Entry]]()
    for entered in entries(board.settled()).values():
        try:
            old = _is_old(known, entered)
        except FarshiftError as error:
            found.left.append(f"{entered}: {error}")
        else:
            if old:
                todo.setdefault(entered.submission, []).append(entered)
    for number, (submission, those) in enumerate(todo.items()):
        try:
            read = check(board.submission_file(submission), {one.run for one in those})
            scores = [scored(entry) for entry in read.entries]
        except FarshiftError as error:
            found.left += [f"{one}: {error}" for one in those]
        else:
            found.rescored += _enter(board, those, scores)
        advance("rescoring", number + 1, len(todo))
    return found


def _is_old(known: dict[str, Benchmark], entered: Entry) -> bool:
    """Whether an entry's newest score is by an older scorer than this version's. `FarshiftError` where it is of another
    protocol or manifest than today's, which no rescoring can fix."""
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


def _enter(board: Board, those: list[Entry], scores: list[Score]) -> list[dict[str, Any]]:
    events: list[Event] = []
    files: dict[str, bytes] = {}
    for one, score in zip(those, scores, strict=True):
        before = one.scores[-1]
        body, content = score_body(one.entry, score)
        body["replaces"] = before.scorer
        body["before"] = values(Score.from_dict(json.loads(board.stored(before))))
        body["after"] = values(score)
        events.append(("rescored", body))
        files |= content
    with board.locked():
        there = entries(board.ledger.records())
        if any(len(there[one.entry].scores) > len(one.scores) for one in those):
            return []  # another process was faster
        board.enter(events, files)
    shown = ("entry", "replaces", "scorer", "before", "after")
    return [{name: body[name] for name in shown} for _, body in events]
