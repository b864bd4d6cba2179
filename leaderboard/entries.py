"""Entries by the ledger's records: what was submitted, its scores, and whether it was withdrawn or removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..benchmarks.scoring.record import Score
from ..core.errors import FarshiftError
from .ledger import Record

Hex16 = Field(pattern=r"^[0-9a-f]{16}$")
Hex64 = Field(pattern=r"^[0-9a-f]{64}$")


class Body(BaseModel):
    """What a record's body has at least."""

    model_config = ConfigDict(strict=True, frozen=True)


class Item(Body):
    """One run of a submission. steps: set by hand instead of the budget's. run_digest: of its card."""

    entry: str = Hex16
    run: int = Field(ge=0)
    benchmark: str
    model: str
    budget: str
    steps: int | None
    selection: str
    run_digest: str = Hex64

    def __str__(self) -> str:
        return f"entry {self.entry} ({self.model} on {self.benchmark})"


class Submitted(Body):
    submission: str = Hex64
    name: str
    team: str
    note: str
    entries: list[Item]


class Scored(Body):
    """A score, made by the scorer of a version; its file is `scores/<entry>/<scorer>.json`."""

    entry: str = Hex16
    entry_identity: str = Hex64
    scorer: int = Field(ge=1)
    files: dict[str, str]

    @property
    def path(self) -> str:
        return score_path(self.entry, self.scorer)

    @property
    def digest(self) -> str:
        return self.files.get(self.path, "")


class Values(Body):
    """The two values that a table shows first."""

    id: float
    ood: float


class Rescored(Scored):
    """A score by a newer scorer, and what it was and is now."""

    replaces: int = Field(ge=1)
    before: Values
    after: Values


class Leaving(Body):
    entry: str = Hex16
    reason: str = Field(min_length=1)


@dataclass(frozen=True)
class Left:
    """Why an entry is in no table. kind: withdrawn (by its team) or removed (by the board)."""

    kind: str
    reason: str
    time: str


@dataclass
class Entered:
    """An entry. scores: by every scorer that scored it, the newest last. left: None while it stands."""

    item: Item
    submission: str
    name: str
    team: str
    note: str
    time: str
    scores: list[Scored] = field(default_factory=list)
    left: Left | None = None

    @property
    def entry(self) -> str:
        return self.item.entry


@dataclass(frozen=True)
class Standing:
    """One entry as it stands on the board: who, when, and its newest score record. run: its number in the
    submission."""

    entry: str
    submission: str
    run: int
    team: str
    note: str
    time: str
    score: Score


@dataclass(frozen=True)
class Apart:
    """One entry that is in no table, why, and the newest score that it had."""

    standing: Standing
    left: Left


def submission_path(digest: str) -> str:
    """Where a board keeps a submission."""
    return f"submissions/{digest}.zip"


def score_path(entry: str, scorer: int) -> str:
    """Where a board keeps an entry's score by the scorer of a version."""
    return f"scores/{entry}/{scorer}.json"


def entries(records: Sequence[Record]) -> dict[str, Entered]:
    """All entries by name, in the order they came; `FarshiftError` for a record that lacks what its kind has."""
    found, problems = read_entries(records)
    if problems:
        raise FarshiftError(f"the ledger's {problems[0]}: farshift board verify lists what differs")
    return found


def read_entries(records: Sequence[Record]) -> tuple[dict[str, Entered], list[str]]:
    """All entries by name, and what is wrong with their records. What was submitted to a sealed window
    (`window` in the body) is no entry of a table."""
    found: dict[str, Entered] = {}
    problems: list[str] = []
    for record in records:
        if record.kind in _READ and "window" not in record.body:
            try:
                _READ[record.kind](found, record)
            except ValidationError as error:
                problems.append(lacking(record, error))
            except ValueError as error:
                problems.append(f"record {record.seq} ({record.kind}) {error}")
    return found, problems


def lacking(record: Record, error: ValidationError) -> str:
    """What is wrong with a record whose body is not what its kind has."""
    where = ".".join(map(str, error.errors()[0]["loc"]))
    return f"record {record.seq} lacks what a record of the kind {record.kind} has ({where})"


def _submitted(found: dict[str, Entered], record: Record) -> None:
    body = Submitted.model_validate(record.body)
    for item in body.entries:
        if item.entry in found:
            raise ValueError(f"enters {item.entry} a second time")
        found[item.entry] = Entered(item, body.submission, body.name, body.team, body.note, record.time)


def _scored(found: dict[str, Entered], record: Record) -> None:
    body = Scored.model_validate(record.body)
    entered = _known(found, body.entry)
    if entered.scores:
        raise ValueError(f"scores {body.entry} a second time")
    entered.scores.append(body)


def _rescored(found: dict[str, Entered], record: Record) -> None:
    body = Rescored.model_validate(record.body)
    entered = _known(found, body.entry)
    if not entered.scores or entered.scores[-1].scorer != body.replaces or body.scorer <= body.replaces:
        raise ValueError(f"replaces a score by scorer {body.replaces}, which {body.entry} does not stand with")
    entered.scores.append(body)


def _left(found: dict[str, Entered], record: Record) -> None:
    body = Leaving.model_validate(record.body)
    entered = _known(found, body.entry)
    if entered.left is not None and entered.left.kind in (record.kind, "removed"):
        raise ValueError(f"is about {body.entry}, which was {entered.left.kind} before")
    entered.left = Left(record.kind, body.reason, record.time)


def _known(found: dict[str, Entered], entry: str) -> Entered:
    if entry not in found:
        raise ValueError(f"is about {entry}, which was never submitted")
    return found[entry]


_READ = {"submitted": _submitted, "scored": _scored, "rescored": _rescored, "withdrawn": _left, "removed": _left}
