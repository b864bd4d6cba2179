"""A board's entries as a list: what was submitted, and the two numbers that tables show first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ...core.errors import BadData
from ...core.listings.listing import Listing
from ..entries import Standing
from ..teams import shown_names


@dataclass(frozen=True)
class BoardEntry:
    """One run of a submission. run: its number there; team: the name that is shown; team_key: its public key, empty
    where it did not sign; steps: where they are not the budget's; submission: sha256 of its zip; scorer: the version of
    its newest score, entry_identity: of its table; id, ood: its scores; left: kind (withdrawn, removed), reason and
    time, None while it is in a table."""

    entry: str
    run: int
    benchmark: str
    kind: str
    model: str
    team: str
    team_key: str
    name: str
    note: str
    budget: str
    steps: int | None
    selection: str
    submission: str
    time: str
    reference: bool
    scorer: int
    entry_identity: str
    id: float
    ood: float
    left: dict[str, str] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


_OF_ENTRY = ("entry", "run", "benchmark", "model", "team_key", "name", "note", "budget", "steps", "selection")


def board_entry(standing: Standing, team: str) -> BoardEntry:
    """An entry, under the name that is shown of its team."""
    score = standing.score
    return BoardEntry(
        **{name: getattr(standing, name) for name in (*_OF_ENTRY, "submission", "time", "reference")},
        kind=score.kind,
        team=team,
        scorer=score.scorer,
        entry_identity=score.entry_identity,
        id=float(score.id.value),
        ood=float(score.ood.value),
        left=None if standing.left is None else dict(vars(standing.left)),
    )


def read_board_entry(said: Mapping[str, Any], where: str) -> BoardEntry:
    """An entry as a server says it; `BadData` where it lacks something."""
    names = [field.name for field in fields(BoardEntry)]
    if missing := [name for name in names if name not in said]:
        raise BadData(f"{where}: an entry has no {missing[0]}: the server is of another version")
    return BoardEntry(**{name: said[name] for name in names})


def board_entries(standings: Iterable[Standing]) -> list[BoardEntry]:
    """The entries of standings, teams under the names that are shown."""
    every = list(standings)
    shown = shown_names(every)
    return [board_entry(one, shown[one.team, one.team_key]) for one in every]


def listed(found: Iterable[BoardEntry]) -> Listing[BoardEntry]:
    """Entries as a listing."""
    return Listing(
        list(found),
        "run",  # an entry is a run of a submission
        lambda one: {
            "entry": one.entry,
            "model": one.model,
            "benchmark": one.benchmark,
            "team": one.team,
            "ID": f"{one.id:.4g}",
            "OOD": f"{one.ood:.4g}",
        },
    )
