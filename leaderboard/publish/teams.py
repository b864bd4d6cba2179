"""A page for each team: its key and names, its entries and attempts, and its answers to sealed windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ..entries import ScoredEntry
from ..sealed.window import read_windows
from ..tables.snapshot import Snapshot
from ..tables.table_view import Row, TableView
from ..teams import compute_fingerprint, make_team_identity
from .page import Page

if TYPE_CHECKING:
    from .site import Site


@dataclass
class TeamRecord:
    """The data of a team. key: its public key, empty if it does not sign; names: the names it used; rows: its entries
    with their tables; apart: withdrawn and removed entries; answers: its answers to sealed windows."""

    key: str
    names: set[str] = field(default_factory=set)
    rows: list[tuple[TableView, Row]] = field(default_factory=list)
    apart: list[ScoredEntry] = field(default_factory=list)
    answers: list[dict[str, str]] = field(default_factory=list)


def make_team_slug(identity: str) -> str:
    """Return the name of a team's page from its identity (`identify_team`): the fingerprint of its key, or `name-` and
    16 digits of its name's sha256; empty for a team without a key or name, which has no page."""
    kind, _, value = identity.partition(":")
    if kind == "key":
        return compute_fingerprint(value)
    return f"name-{sha256(value.encode()).hexdigest()[:16]}" if value else ""


def list_pages(site: Site) -> Iterator[Page]:
    """Yield the pages of all teams, by identity."""
    for identity, record in sorted(_collect_teams(site).items()):
        if slug := make_team_slug(identity):
            yield Page(f"teams/{slug}.html", "team.html", partial(_make_context, site.snapshot, record))


def _collect_teams(site: Site) -> dict[str, TeamRecord]:
    """Return the data of all teams by identity."""
    records: dict[str, TeamRecord] = {}

    def get_record(team: str, key: str) -> TeamRecord:
        record = records.setdefault(make_team_identity(team, key), TeamRecord(key))
        if team:
            record.names.add(team)
        return record

    for table_view in site.snapshot.views:
        for row in table_view.rows:
            get_record(row.standing.team, row.standing.team_key).rows.append((table_view, row))
    for standing in site.snapshot.apart:
        get_record(standing.team, standing.team_key).apart.append(standing)
    for window in read_windows(site.records).values():
        for digest, body in window.answers.items():
            answer = {"window": window.name, "submission": digest, "model": str(body["model"])}
            record = get_record(str(body["team"]), str(body.get("signed_by", "")))
            record.answers.append(answer | {"time": window.times[digest]})
    return records


def _make_context(board: Snapshot, record: TeamRecord) -> dict[str, Any]:
    attempts = {view.table.identity: row.attempts for view, row in record.rows if row.attempts is not None}
    tables = (view.table for view in board.views)
    names = sorted(record.names)
    return {
        "team": record,
        "mark": compute_fingerprint(record.key) if record.key else "",
        "names": names,
        "title": names[0] if names else "A team without a name",
        "attempts": [(table, attempts[table.identity]) for table in tables if table.identity in attempts],
    }
