"""Entries, read from the ledger's records: submissions, scores, withdrawals and removals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from ..benchmarks.scoring.record import Score
from ..core.errors import FarshiftError
from .ledger import Record
from .teams import compute_fingerprint, make_team_identity

Hex16 = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(strict=True, ge=0)]
Flag = Annotated[bool, Field(strict=True)]


@dataclass(frozen=True, kw_only=True)
class ScoreRecord:
    """A score by one version of the scorer; its file is `scores/<entry>/<scorer>.json`. A score by a newer scorer
    `replaces` an earlier one; `before` and `after`: the ID and OOD values of both."""

    entry: Hex16
    entry_identity: Hex64
    scorer: Count
    files: dict[str, str]
    replaces: Count | None = None
    before: dict[str, float] | None = None
    after: dict[str, float] | None = None

    @property
    def path(self) -> str:
        return get_score_path(self.entry, self.scorer)

    @property
    def digest(self) -> str:
        return self.files.get(self.path, "")


@dataclass(frozen=True)
class Removal:
    """Why an entry is not in a table. kind: withdrawn (by its team) or removed (by the board)."""

    kind: str
    reason: Annotated[str, Field(min_length=1)]
    time: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run of a submission on a board. run: its number in the submission; steps: set by hand instead of by the
    budget; run_digest: of its run card; name, team, note, team_key: of the submission (team_key: the key of the team
    that signed it, empty if unsigned); choose: whether its card says that the team is ranked by this submission;
    scores: by every scorer, the newest last; left: None while it is in a table; reference: whether the board's operator
    declared it as a reference, which is always ranked (tables/ranking.py)."""

    entry: Hex16
    run: Count
    benchmark: str
    model: str
    budget: str
    steps: Count | None
    selection: str
    run_digest: Hex64
    submission: Hex64
    name: str
    team: str
    note: str
    time: str
    team_key: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    choose: Flag = False
    reference: bool = False
    scores: tuple[ScoreRecord, ...] = ()
    left: Removal | None = None

    @property
    def team_identity(self) -> str:
        """Who submitted it (`make_team_identity`)."""
        return make_team_identity(self.team, self.team_key)

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


_ENTRY, _SCORE, _REMOVAL = TypeAdapter(Entry), TypeAdapter(ScoreRecord), TypeAdapter(Removal)
_OF_SUBMISSION = ("submission", "name", "team", "note", "team_key", "choose")


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
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    for record in records:
        if "window" in record.body:
            continue
        try:
            entries |= _apply(entries, record)
        except (ValidationError, KeyError, TypeError, AttributeError) as error:
            where = error.errors()[0]["loc"] if isinstance(error, ValidationError) else error.args
            problems.append(
                f"record {record.seq} ({record.kind}) has missing or invalid fields ({'.'.join(map(str, where))})"
            )
        except ValueError as error:
            problems.append(f"record {record.seq} ({record.kind}) {error}")
    return entries, problems


def _apply(entries: Mapping[str, Entry], record: Record) -> dict[str, Entry]:
    """The entries that a record adds or changes, by name. `ValueError` says why it cannot follow the earlier records,
    and `ValidationError`, `KeyError`, `TypeError` or `AttributeError` is raised for invalid fields."""
    body = record.body
    if record.kind == "submitted":
        shared = {name: body[name] for name in _OF_SUBMISSION if name in body} | {"time": record.time}
        new = [_ENTRY.validate_python({**_pick_fields(run), **shared}) for run in body["entries"]]
        names = [entry.entry for entry in new]
        for name in names:
            if name in entries or names.count(name) > 1:
                raise ValueError(f"enters {name} again")
        return dict(zip(names, new, strict=True))
    if record.kind == "referenced":
        return {name: replace(_get_entry(entries, name), reference=True) for name in body["declared"]}
    if record.kind in ("withdrawn", "removed"):
        removal = {"kind": record.kind, "time": record.time} | {
            name: body[name] for name in ("reason",) if name in body
        }
        left, entry = _REMOVAL.validate_python(removal), _get_entry(entries, body["entry"])
        if entry.left is not None and entry.left.kind in (record.kind, "removed"):
            raise ValueError(f"refers to {entry.entry}, which was already {entry.left.kind}")
        return {entry.entry: replace(entry, left=left)}
    if record.kind in ("scored", "rescored"):
        score = _SCORE.validate_python(body)
        if record.kind == "rescored":
            for name in ("before", "after"):
                body[name]["id"], body[name]["ood"]
        entry = _get_entry(entries, score.entry)
        if record.kind == "scored" and entry.scores:
            raise ValueError(f"scores {score.entry} again")
        current = entry.scores[-1].scorer if entry.scores else None
        if score.replaces != current or (current is not None and score.scorer <= current):
            raise ValueError(
                f"replaces a score by scorer {score.replaces}, which is not the current score of {score.entry}"
            )
        return {entry.entry: replace(entry, scores=(*entry.scores, score))}
    return {}


def _pick_fields(run: Mapping[str, Any]) -> dict[str, Any]:
    """What a record says of one run: nothing that other records say."""
    return {name: value for name, value in run.items() if name not in ("reference", "scores", "left")}


def _get_entry(entries: Mapping[str, Entry], entry: str) -> Entry:
    if entry not in entries:
        raise ValueError(f"refers to {entry}, which was never submitted")
    return entries[entry]
