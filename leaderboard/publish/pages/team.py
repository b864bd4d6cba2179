"""A page for each team: its key and names, its entries and attempts, and its answers to sealed windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ...entries import ScoredEntry
from ...sealed.window import read_windows
from ...tables.table_view import Row, TableView
from ...teams import compute_fingerprint, identify_team
from ..page import Page

if TYPE_CHECKING:
    from ..site import Site


@dataclass(frozen=True)
class Signer:
    """The team name and public key of a submission."""

    team: str
    team_key: str


@dataclass
class TeamRecord:
    """The data of a team. key: its public key, empty if it does not sign; names: the names it used, sorted; rows: its
    entries with their tables; apart: withdrawn and removed entries; answers: its answers to sealed windows."""

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


def pages(site: Site) -> Iterator[Page]:
    """Yield the pages of all teams, by identity."""
    for identity, record in sorted(collect_teams(site).items()):
        if slug := make_team_slug(identity):
            yield Page(f"teams/{slug}.html", "team.html", partial(_make_context, site, identity, record))


def collect_teams(site: Site) -> dict[str, TeamRecord]:
    """Return the data of all teams by identity."""
    records: dict[str, TeamRecord] = {}

    def get_record(signer: Any) -> TeamRecord:
        record = records.setdefault(identify_team(signer), TeamRecord(signer.team_key))
        if signer.team:
            record.names.add(signer.team)
        return record

    for table_view in site.snapshot.views:
        for row in table_view.rows:
            get_record(row.standing).rows.append((table_view, row))
    for standing in site.snapshot.apart:
        get_record(standing).apart.append(standing)
    for window in read_windows(site.records).values():
        for digest, body in window.answers.items():
            signer = Signer(str(body["team"]), str(body.get("signed_by", "")))
            answer = {"window": window.name, "submission": digest, "model": str(body["model"])}
            get_record(signer).answers.append(answer | {"time": window.times[digest]})
    return records


def _make_context(site: Site, identity: str, record: TeamRecord) -> dict[str, Any]:
    attempts: dict[str, int] = {}
    for table_view, row in record.rows:
        if row.attempts is not None:
            attempts[table_view.table.identity] = row.attempts
    return {
        "board": site.snapshot,
        "key": record.key,
        "mark": compute_fingerprint(record.key) if record.key else "",
        "names": sorted(record.names),
        "title": sorted(record.names)[0] if record.names else "A team without a name",
        "rows": record.rows,
        "apart": record.apart,
        "attempts": [
            (view.table, attempts[view.table.identity])
            for view in site.snapshot.views
            if view.table.identity in attempts
        ],
        "answers": record.answers,
        "models": site.models,
    }
