"""A page for each entry, including withdrawn and removed ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ...entries import RescoreRecord, get_submission_path
from ...tables.table_view import Row, TableView
from ...teams import identify_team
from ..figures.heatmap import make_group_map, make_severity_map
from ..figures.severity import make_severity_figure
from ..page import Page
from ..page_graphics import describe_severity_axis
from .compare import list_pairs, make_pair_path
from .split import find_benchmark_manifest, make_split_path
from .team import make_team_slug

if TYPE_CHECKING:
    from ..site import Site


def pages(site: Site) -> Iterator[Page]:
    """Yield the pages of all entries."""
    for table_view in site.snapshot.views:
        for row in table_view.rows:
            yield _make_page(site, row, table_view)
    for entry in site.snapshot.apart:
        yield _make_page(site, Row(standing=entry), None)


def _make_page(site: Site, row: Row, table_view: TableView | None) -> Page:
    where = f"entries/{row.standing.entry}.html"
    return Page(where, "entry.html", partial(_make_context, site, row, table_view))


def _make_context(site: Site, row: Row, table_view: TableView | None) -> dict[str, Any]:
    standing, score = row.standing, row.standing.score
    manifest = find_benchmark_manifest(score.benchmark)
    figures = [
        make_severity_figure([score], [score.model], describe_severity_axis(score.benchmark)),
        make_severity_map(score),
        make_group_map(score),
    ]
    return {
        "board": site.snapshot,
        "row": row,
        "s": score,
        "table_view": table_view,
        "left": standing.left,
        "figures": [item for item in figures if item is not None],
        "card": list_facts(row),
        "declared": row.card.get("declared", {}),
        "links": [
            item for item in row.card.get("declared", {}).get("links", ()) if item.startswith(("https://", "http://"))
        ],
        "rescores": [item for item in standing.scores if isinstance(item, RescoreRecord)],
        "file": get_submission_path(standing.submission),
        "split": None if manifest is None or table_view is None else (manifest.full_name, make_split_path(manifest)),
        "slug": make_team_slug(identify_team(standing)),
        "beside": [] if table_view is None else list_comparisons(row, table_view),
    }


def list_comparisons(row: Row, table_view: TableView) -> list[tuple[str, str]]:
    """Return the comparison pages of an entry, as (name of the other entry, path)."""
    pairs = [pair for pair in list_pairs(table_view) if row in pair]
    return [
        (str((right if left is row else left).standing.score.model), make_pair_path(left, right))
        for left, right in pairs
    ]


def list_facts(row: Row) -> list[tuple[str, str]]:
    """Return the facts stated in an entry's cards, as (name, value); empty ones are omitted."""
    card, score = row.card, row.standing.score
    declared = card.get("declared", {})
    size = card.get("parameters")
    lines = [
        ("Protocol", f"{score.budget} budget" + (f", {score.steps} steps set by hand" if score.steps else "")),
        ("Seeds", f"{', '.join(map(str, score.seeds))} (the protocol requires {score.protocol_seeds})"),
        ("Selection", f"{score.candidates} candidates, chosen by {score.selection}" if score.candidates > 1 else ""),
        ("Data used besides training", ", ".join(score.touched) or "none"),
        ("Declared training data", _join_names(declared.get("training_data"))),
        ("Declared pretraining", _join_names(declared.get("pretraining"))),
        ("Parameters", "" if size is None else f"{size:,}"),
        ("Steps trained", f"{card['steps']:,}" if "steps" in card else ""),
        (
            "Model",
            {"own": "the team's own model", "baseline": "a baseline of Farshift"}.get(
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
    return [(name, value) for name, value in lines if value]


def _join_names(names: list[str] | None) -> str:
    return "" if names is None else ", ".join(names) or "none"
