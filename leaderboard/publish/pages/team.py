"""A page for every team: its key and names, its entries and attempts, and its answers to sealed windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ...entries import Standing
from ...sealed.window import windows
from ...tables.table_view import Row, TableView
from ...teams import fingerprint, team_of
from ..page import Page

if TYPE_CHECKING:
    from ..site import Site


@dataclass(frozen=True)
class Signer:
    """A name and a public key that something was handed in under."""

    team: str
    team_key: str


@dataclass
class Held:
    """What is a team's. key: its public key, empty where it did not sign; names: that it used, sorted; rows: its
    entries with their tables; apart: those that were withdrawn or removed; answers: what it handed in to windows."""

    key: str
    names: set[str] = field(default_factory=set)
    rows: list[tuple[TableView, Row]] = field(default_factory=list)
    apart: list[Standing] = field(default_factory=list)
    answers: list[dict[str, str]] = field(default_factory=list)


def team_slug(identity: str) -> str:
    """The name of a team's page, by its identity (`team_of`): the fingerprint of its key, or 16 digits of its name's
    sha256 after `name-`; empty for the team that names nothing, which has no page."""
    sort, _, said = identity.partition(":")
    if sort == "key":
        return fingerprint(said)
    return f"name-{sha256(said.encode()).hexdigest()[:16]}" if said else ""


def pages(site: Site) -> Iterator[Page]:
    """The pages of all teams, by their identities."""
    for identity, held in sorted(teams(site).items()):
        if slug := team_slug(identity):
            yield Page(f"teams/{slug}.html", "team.html", partial(_context, site, identity, held))


def teams(site: Site) -> dict[str, Held]:
    """What every team holds, by its identity."""
    found: dict[str, Held] = {}

    def of(one: Any) -> Held:
        held = found.setdefault(team_of(one), Held(one.team_key))
        if one.team:
            held.names.add(one.team)
        return held

    for table_view in site.snapshot.views:
        for row in table_view.rows:
            of(row.standing).rows.append((table_view, row))
    for standing in site.snapshot.apart:
        of(standing).apart.append(standing)
    for window in windows(site.records).values():
        for digest, body in window.answers.items():
            signer = Signer(str(body["team"]), str(body.get("signed_by", "")))
            taken = {"window": window.name, "submission": digest, "model": str(body["model"])}
            of(signer).answers.append(taken | {"time": window.times[digest]})
    return found


def _context(site: Site, identity: str, held: Held) -> dict[str, Any]:
    tried: dict[str, int] = {}
    for table_view, row in held.rows:
        if row.attempts is not None:
            tried[table_view.table.identity] = row.attempts
    return {
        "board": site.snapshot,
        "key": held.key,
        "mark": fingerprint(held.key) if held.key else "",
        "names": sorted(held.names),
        "title": sorted(held.names)[0] if held.names else "A team without a name",
        "rows": held.rows,
        "apart": held.apart,
        "attempts": [
            (view.table, tried[view.table.identity]) for view in site.snapshot.views if view.table.identity in tried
        ],
        "answers": held.answers,
        "models": site.models,
    }
