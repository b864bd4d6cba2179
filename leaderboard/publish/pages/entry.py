"""A page for every entry, also for those that were withdrawn or removed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ...entries import Rescored, submission_path
from ...tables.table_view import Row, TableView
from ...teams import team_of
from ..figures.heat import group_map, severity_map
from ..figures.severity import severity_curves
from ..page import Page
from ..page_pictures import axis_of
from .compare import pair_path, pairs_of
from .split import manifest_of, split_path
from .team import team_slug

if TYPE_CHECKING:
    from ..site import Site


def pages(site: Site) -> Iterator[Page]:
    """The pages of all entries."""
    for table_view in site.snapshot.views:
        for row in table_view.rows:
            yield _page(site, row, table_view)
    for one in site.snapshot.apart:
        yield _page(site, Row(standing=one), None)


def _page(site: Site, row: Row, table_view: TableView | None) -> Page:
    where = f"entries/{row.standing.entry}.html"
    return Page(where, "entry.html", partial(_context, site, row, table_view))


def _context(site: Site, row: Row, table_view: TableView | None) -> dict[str, Any]:
    standing, score = row.standing, row.standing.score
    manifest = manifest_of(score.benchmark)
    figures = [
        severity_curves([score], [score.model], axis_of(score.benchmark)),
        severity_map(score),
        group_map(score),
    ]
    return {
        "board": site.snapshot,
        "row": row,
        "s": score,
        "table_view": table_view,
        "left": standing.left,
        "figures": [one for one in figures if one is not None],
        "card": facts(row),
        "declared": row.card.get("declared", {}),
        "links": [
            one for one in row.card.get("declared", {}).get("links", ()) if one.startswith(("https://", "http://"))
        ],
        "rescores": [one for one in standing.scores if isinstance(one, Rescored)],
        "file": submission_path(standing.submission),
        "split": None if manifest is None or table_view is None else (manifest.full_name, split_path(manifest)),
        "slug": team_slug(team_of(standing)),
        "beside": [] if table_view is None else beside(row, table_view),
    }


def beside(row: Row, table_view: TableView) -> list[tuple[str, str]]:
    """The comparisons of an entry that have a page: with whom, and where."""
    mine = [pair for pair in pairs_of(table_view) if row in pair]
    return [
        (str((right if left is row else left).standing.score.model), pair_path(left, right)) for left, right in mine
    ]


def facts(row: Row) -> list[tuple[str, str]]:
    """What an entry's cards say, each in a line; what they do not say is not there."""
    card, score = row.card, row.standing.score
    declared = card.get("declared", {})
    size = card.get("parameters")
    said = [
        ("Protocol", f"{score.budget} budget" + (f", {score.steps} steps set by hand" if score.steps else "")),
        ("Seeds", f"{', '.join(map(str, score.seeds))} (the protocol asks for {score.protocol_seeds})"),
        ("Selection", f"{score.candidates} candidates, chosen by {score.selection}" if score.candidates > 1 else ""),
        ("Data touched besides training", ", ".join(score.touched) or "none"),
        ("Declared training data", _names(declared.get("training_data"))),
        ("Declared pretraining", _names(declared.get("pretraining"))),
        ("Parameters", "" if size is None else f"{size:,}"),
        ("Steps trained", f"{card['steps']:,}" if "steps" in card else ""),
        (
            "Model",
            {"own": "the team's own", "baseline": "a baseline of Farshift"}.get(
                card.get("kind", ""), card.get("kind", "")
            ),
        ),
        ("Digest of its code", card.get("code", "")),
        ("Device", card.get("device", "")),
        ("Environment", ", ".join(f"{name} {value}" for name, value in card.get("environment", {}).items())),
        ("Spent", f"{card['seconds']:,.0f} s, finished {card.get('finished', '')}" if "seconds" in card else ""),
        ("Declared budget", declared.get("budget", "")),
        ("Declared protocol", declared.get("protocol", "")),
        ("Contact", declared.get("contact", "")),
    ]
    return [(name, value) for name, value in said if value]


def _names(names: list[str] | None) -> str:
    return "" if names is None else ", ".join(names) or "none"
