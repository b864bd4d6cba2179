"""Entries, read from the ledger's records: submissions, scores, withdrawals and removals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..benchmarks.scoring.record import Score
from ..core.errors import FarshiftError
from .ledger import Record
from .teams import compute_fingerprint

Hex16 = Field(pattern=r"^[0-9a-f]{16}$")
Hex64 = Field(pattern=r"^[0-9a-f]{64}$")


class Body(BaseModel):
    """Base class of the bodies of records."""

    model_config = ConfigDict(strict=True, frozen=True)


class SubmittedRun(Body):
    """One run of a submission, as a record describes it; see `Entry`."""

    entry: str = Hex16
    run: int = Field(ge=0)
    benchmark: str
    model: str
    budget: str
    steps: int | None
    selection: str
    run_digest: str = Hex64


class SubmissionRecord(Body):
    submission: str = Hex64
    name: str
    team: str
    note: str
    team_key: str = Field("", pattern=r"^([0-9a-f]{64})?$")
    choose: bool = False
    entries: list[SubmittedRun]


class ScoreRecord(Body):
    """A score by one version of the scorer; its file is `scores/<entry>/<scorer>.json`."""

    entry: str = Hex16
    entry_identity: str = Hex64
    scorer: int = Field(ge=1)
    files: dict[str, str]

    @property
    def path(self) -> str:
        return get_score_path(self.entry, self.scorer)

    @property
    def digest(self) -> str:
        return self.files.get(self.path, "")


class Values(Body):
    """The two values that a table shows: the ID and the OOD score."""

    id: float
    ood: float


class RescoreRecord(ScoreRecord):
    """A score by a newer scorer, with the values before and after."""

    replaces: int = Field(ge=1)
    before: Values
    after: Values


class ReferenceRecord(Body):
    """Entries that the board's operator declared as references: always ranked."""

    declared: list[Annotated[str, Hex16]]


class RemovalRecord(Body):
    entry: str = Hex16
    reason: str = Field(min_length=1)


@dataclass(frozen=True)
class Removal:
    """Why an entry is not in a table. kind: withdrawn (by its team) or removed (by the board)."""

    kind: str
    reason: str
    time: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run of a submission on a board. run: its number in the submission; steps: set by hand instead of by the
    budget; run_digest: of its run card; name, team, note, team_key: of the submission (team_key: the key of the team
    that signed it, empty if unsigned); choose: whether its card says that the team is ranked by this submission;
    scores: by every scorer, the newest last; left: None while it is in a table; reference: whether the board's operator
    declared it as a reference, which is always ranked (tables/ranking.py)."""

    entry: str
    run: int
    benchmark: str
    model: str
    budget: str
    steps: int | None
    selection: str
    run_digest: str
    submission: str
    name: str
    team: str
    note: str
    time: str
    team_key: str = ""
    choose: bool = False
    reference: bool = False
    scores: tuple[ScoreRecord, ...] = ()
    left: Removal | None = None

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the team's key, empty if unsigned."""
        return compute_fingerprint(self.team_key) if self.team_key else ""

    def __str__(self) -> str:
        return f"entry {self.entry} ({self.model} on {self.benchmark})"


@dataclass(frozen=True, kw_only=True)
class ScoredEntry(Entry):
    """An entry with its newest score."""

    score: Score


def get_submission_path(digest: str) -> str:
    """The path of a submission's file on a board."""
    return f"submissions/{digest}.zip"


def get_score_path(entry: str, scorer: int) -> str:
    """The path of an entry's score by one version of the scorer."""
    return f"scores/{entry}/{scorer}.json"


def read_valid_entries(records: Sequence[Record]) -> dict[str, Entry]:
    """All entries by name, in ledger order; `FarshiftError` for an invalid record."""
    known_entries, problems = read_entries(records)
    if problems:
        raise FarshiftError(f"the ledger's {problems[0]}: run farshift board verify to list what differs")
    return known_entries


def read_entries(records: Sequence[Record]) -> tuple[dict[str, Entry], list[str]]:
    """All entries by name, and the problems of their records. A submission to a sealed window (its body has `window`)
    is not an entry."""
    known_entries: dict[str, Entry] = {}
    problems: list[str] = []
    for record in records:
        if record.kind in _READ and "window" not in record.body:
            try:
                _READ[record.kind](known_entries, record)
            except ValidationError as error:
                where = ".".join(map(str, error.errors()[0]["loc"]))
                problems.append(f"record {record.seq} ({record.kind}) has missing or invalid fields ({where})")
            except ValueError as error:
                problems.append(f"record {record.seq} ({record.kind}) {error}")
    return known_entries, problems


def _apply_submission(known_entries: dict[str, Entry], record: Record) -> None:
    body = SubmissionRecord.model_validate(record.body)
    for run in body.entries:
        if run.entry in known_entries:
            raise ValueError(f"enters {run.entry} again")
        known_entries[run.entry] = Entry(
            **dict(run),
            submission=body.submission,
            name=body.name,
            team=body.team,
            note=body.note,
            time=record.time,
            team_key=body.team_key,
            choose=body.choose,
        )


def _apply_score(known_entries: dict[str, Entry], record: Record) -> None:
    body = ScoreRecord.model_validate(record.body)
    entry = _get_entry(known_entries, body.entry)
    if entry.scores:
        raise ValueError(f"scores {body.entry} again")
    known_entries[body.entry] = replace(entry, scores=(body,))


def _apply_rescore(known_entries: dict[str, Entry], record: Record) -> None:
    body = RescoreRecord.model_validate(record.body)
    entry = _get_entry(known_entries, body.entry)
    if not entry.scores or entry.scores[-1].scorer != body.replaces or body.scorer <= body.replaces:
        raise ValueError(f"replaces a score by scorer {body.replaces}, which is not the current score of {body.entry}")
    known_entries[body.entry] = replace(entry, scores=(*entry.scores, body))


def _apply_removal(known_entries: dict[str, Entry], record: Record) -> None:
    body = RemovalRecord.model_validate(record.body)
    entry = _get_entry(known_entries, body.entry)
    if entry.left is not None and entry.left.kind in (record.kind, "removed"):
        raise ValueError(f"refers to {body.entry}, which was already {entry.left.kind}")
    known_entries[body.entry] = replace(entry, left=Removal(record.kind, body.reason, record.time))


def _apply_reference(known_entries: dict[str, Entry], record: Record) -> None:
    for name in ReferenceRecord.model_validate(record.body).declared:
        known_entries[name] = replace(_get_entry(known_entries, name), reference=True)


def _get_entry(known_entries: dict[str, Entry], entry: str) -> Entry:
    if entry not in known_entries:
        raise ValueError(f"refers to {entry}, which was never submitted")
    return known_entries[entry]


_READ = {
    "submitted": _apply_submission,
    "scored": _apply_score,
    "rescored": _apply_rescore,
    "withdrawn": _apply_removal,
    "removed": _apply_removal,
    "referenced": _apply_reference,
}
