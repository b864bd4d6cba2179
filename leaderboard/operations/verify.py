"""Verification: everything on a board computed again from its submissions, by anybody who has an export."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ...benchmarks.benchmark import Benchmark, benchmarks
from ...benchmarks.scoring.record import Score
from ...core.canonical import identity_of
from ...core.errors import BadData, FarshiftError, Unavailable, UnknownName
from ...core.files import file_sha256
from ...core.progress import advance
from ..board import Board
from ..entries import Entry, Rescored, read_entries, submission_path
from ..ledger import Record
from ..ledger.chain import chain_problems
from ..sealed.verify import verify_sealed
from ..storage.board_files import held_back, named_files, named_problems
from ..storage.readers import BoardReader, files_in, plain_file
from ..submission.validate import Submission, ValidRun, check
from .challenge import verify_challenges
from .submit import entry_name, item_of, scored, values


@dataclass
class Verification:
    """What a recomputation found: entries, every difference, and what could not be recomputed here, with why.

    records, head: how many records the ledger has, and the hash of the last: note it, and a later look tells whether
    records were cut off. key: the board's public key."""

    entries: int = 0
    records: int = 0
    head: str = ""
    key: str = ""
    differences: list[str] = field(default_factory=list)
    not_recomputed: list[str] = field(default_factory=list)


class FolderReader:
    """A board's own folder."""

    whole = True

    def __init__(self, board: Board) -> None:
        self.place, self.folder, self.card, self._board = str(board.path), board.path, board.card, board

    def read(self) -> tuple[list[Record], list[str]]:
        # What a killed submit left is finished first; where the chain is broken, that waits.
        with suppress(FarshiftError):
            self._board.settled()
        return self._board.ledger.store.records(), []

    def file(self, path: str) -> Path | None:
        return plain_file(self.folder, path)

    def strays(self, folders: set[str]) -> list[str]:
        found = files_in(self.folder, folders)
        return sorted(set(found) - set(named_files(self._board.ledger.store.records())))  # entered meanwhile


def verify(board: Board | BoardReader, head: str | None = None, key: str | None = None) -> Verification:
    """Recompute everything: the chain, each signature, each file's digest, each score from its predictions.

    head: the hash of a record, key: the board's public key, known from an earlier look."""
    copy = FolderReader(board) if isinstance(board, Board) else board
    records, unread = copy.read()
    found = Verification(records=len(records), head=records[-1].hash if records else "", key=str(copy.card.get("key")))
    found.differences += unread + _key_problems(records, found.key, key)
    found.differences += chain_problems(records, found.key, head) + named_problems(records)
    there, wrong = read_entries(records)
    found.entries = len(there)
    found.differences += wrong
    good = _verify_files(copy, records, found)
    by_submission: dict[str, list[Entry]] = {}
    for entered in there.values():
        by_submission.setdefault(entered.submission, []).append(entered)
    known = benchmarks()
    for number, (digest, those) in enumerate(by_submission.items()):
        for entered in those:
            found.differences += [f"{entered}: {problem}" for problem in _inconsistencies(copy, entered, good)]
        due = _recomputable(those, known, found)
        if due and submission_path(digest) in good:
            _recompute(copy, digest, due, found)
        advance("recomputing", number + 1, len(by_submission))
    for differences, unsure in (verify_sealed(copy, records), verify_challenges(copy.folder, records)):
        found.differences += differences
        found.not_recomputed += unsure
    named = named_files(records)
    folders = {path.split("/")[0] for path in named} | {"submissions", "scores"}
    found.differences += [f"{path} belongs to no record" for path in copy.strays(folders) if path not in named]
    return found


def _key_problems(records: list[Record], stated: str, known: str | None) -> list[str]:
    problems = []
    if known is not None and known != stated:
        problems.append(f"board.toml has the key {stated}, not {known}: this is another board, or a forged copy")
    if records and (opening := records[0].body.get("key")) != stated:
        problems.append(f"board.toml has the key {stated}, and the board was opened with {opening}")
    return problems


def _verify_files(copy: BoardReader, records: list[Record], found: Verification) -> set[str]:
    """Check every named file against its digest. Returns those that are what the ledger says."""
    hidden = set() if copy.whole else held_back(records)
    good = set()
    for path, digest in named_files(records).items():
        if path in hidden:
            continue
        try:
            here = copy.file(path)
        except (Unavailable, BadData) as error:
            found.differences.append(f"{path} could not be had: {error}")
            continue
        if here is None:
            found.differences.append(f"{path} is missing")
        elif file_sha256(here) != digest:
            found.differences.append(f"{path} was changed: its sha256 is not the ledger's")
        else:
            good.add(path)
    return good


def _recomputable(those: list[Entry], known: dict[str, Benchmark], found: Verification) -> list[Entry]:
    """The entries whose newest score this version of Farshift makes; why the others are left is noted."""
    due = []
    for entered in those:
        if why := _not_recomputable(known, entered):
            found.not_recomputed.append(f"{entered}: {why}")
        elif entered.scores:
            due.append(entered)
    return due


def _recompute(copy: BoardReader, digest: str, due: list[Entry], found: Verification) -> None:
    path = submission_path(digest)
    file = copy.file(path)
    assert file is not None, "it was found good"
    try:
        submission = check(file, {entered.run for entered in due})
    except Unavailable as error:
        found.not_recomputed += [f"{entered}: {error}" for entered in due]
        return
    except FarshiftError as error:
        found.differences.append(f"{path} no longer validates: {error}")
        return
    for entered, entry in zip(due, submission.entries, strict=True):
        found.differences += [f"{entered}: {problem}" for problem in _differences(entered, submission, entry)]


def _inconsistencies(copy: BoardReader, entered: Entry, good: set[str]) -> list[str]:
    """What in an entry's records contradicts the ledger or the stored scores."""
    if not entered.scores:
        return ["was submitted and never scored"]
    problems = []
    first = entered.scores[0].entry_identity
    if entry_name(entered.submission, entered.run, first) != entered.entry:
        problems.append("its name is not that of its submission, run and identity")
    for score in entered.scores:
        if list(score.files) != [score.path]:
            problems.append(f"its record names other files than {score.path}")
    for before, after in zip(entered.scores, entered.scores[1:], strict=False):
        assert isinstance(after, Rescored)
        for which, score in (("before", before), ("after", after)):
            here = copy.file(score.path) if score.path in good else None
            if here and values(Score.from_dict(json.loads(here.read_bytes()))) != getattr(after, which).model_dump():
                problems.append(f"the value {which} its rescoring by scorer {after.scorer} is not that of {score.path}")
    return problems


def _not_recomputable(known: dict[str, Benchmark], entered: Entry) -> str:
    """Why an entry's newest score is not one that this version of Farshift makes; empty where it is."""
    if not entered.scores:
        return ""
    newest = entered.scores[-1]
    try:
        if entered.benchmark not in known:
            raise UnknownName("benchmark", entered.benchmark, known)
        benchmark = known[entered.benchmark]
        if benchmark.identity(entered.budget, entered.steps, entered.selection) == newest.entry_identity:
            return ""
        made = benchmark.made_under(newest.entry_identity, entered.budget, entered.steps, entered.selection)
    except FarshiftError as error:
        return f"{error} (if it is your own, set FARSHIFT_PATH to the folder that defines it)"
    if made is not None:
        return f"scored by scorer {made}: farshift board rescore has it scored by this version's"
    return "of an older identity, which this version does not score"


def _differences(entered: Entry, submission: Submission, entry: ValidRun) -> list[str]:
    newest = entered.scores[-1]
    problems = []
    for name, said, is_ in (
        ("name", entered.name, submission.name),
        ("team", entered.team, submission.team),
        ("team_key", entered.team_key, submission.team_key),
        ("note", entered.note, submission.note),
        *((name, getattr(entered, name), value) for name, value in item_of(entered.entry, entered.run, entry).items()),
    ):
        if said != is_:
            problems.append(f"its {name} is {said!r} in the ledger and {is_!r} in the submission")
    try:
        again: Score = scored(entry)
    except FarshiftError as error:
        return [*problems, f"can no longer be scored: {error}"]
    if again.scorer != newest.scorer:
        problems.append(f"scorer {newest.scorer} is stated, and {again.scorer} makes this identity")
    if identity_of(again.to_dict()) != newest.digest:
        problems.append("computed again, its score differs from the ledger")
    return problems
