"""A board's entries as a list, with their ID and OOD scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ...core.errors import BadData
from ...core.listings import Listing
from ..entries import ScoredEntry
from ..teams import make_display_names


@dataclass(frozen=True)
class BoardEntry:
    """One run of a submission. run: its number in the submission; team: the display name; team_key: the team's public
    key, empty if the submission is not signed; steps: training steps, if they differ from the budget's; submission:
    sha256 of its zip; scorer: version of the scorer of its newest score; entry_identity: identity of its table; id,
    ood: its scores; left: kind (withdrawn, removed), reason and time, None while it is in a table."""

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
        """Return plain JSON."""
        return asdict(self)


_OF_ENTRY = ("entry", "run", "benchmark", "model", "team_key", "name", "note", "budget", "steps", "selection")


def make_board_entry(standing: ScoredEntry, team: str) -> BoardEntry:
    """Create an entry with its team's display name."""
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


def read_board_entry(answer: Mapping[str, Any], where: str) -> BoardEntry:
    """Parse an entry from a server's response. Raises `BadData` if a field is missing."""
    names = [field.name for field in fields(BoardEntry)]
    if missing := [name for name in names if name not in answer]:
        raise BadData(f"{where}: an entry has no {missing[0]}: the server runs another version of Farshift")
    return BoardEntry(**{name: answer[name] for name in names})


def make_board_entries(standings: Iterable[ScoredEntry]) -> list[BoardEntry]:
    """Create entries from standings, with the teams' display names."""
    every = list(standings)
    shown = make_display_names(every)
    return [make_board_entry(entry, shown[entry.team, entry.team_key]) for entry in every]


def make_listing(entries: Iterable[BoardEntry]) -> Listing[BoardEntry]:
    """Return entries as a listing."""
    return Listing(
        list(entries),
        "run",  # an entry is a run of a submission
        lambda entry: {
            "entry": entry.entry,
            "model": entry.model,
            "benchmark": entry.benchmark,
            "team": entry.team,
            "ID": f"{entry.id:.4g}",
            "OOD": f"{entry.ood:.4g}",
        },
    )
