"""A page for each entry, including withdrawn and removed ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..entries import RescoreRecord, get_submission_path
from ..tables.table_view import Row, TableView
from ..teams import identify_team
from .compare import list_pairs, make_pair_path
from .figures import make_entry_figures
from .page import Page
from .splits import find_benchmark_manifest, make_split_path
from .teams import make_team_slug

if TYPE_CHECKING:
    from .site import Site

_KINDS = {"own": "the team's own model", "baseline": "a baseline of Farshift"}
"""Kinds of models in a run's card."""


def list_pages(site: Site) -> Iterator[Page]:
    """Yield the pages of all entries."""
    entries: list[tuple[Row, TableView | None]] = [(row, view) for view in site.snapshot.views for row in view.rows]
    entries += [(Row(standing=entry), None) for entry in site.snapshot.apart]
    for row, view in entries:
        yield Page(f"entries/{row.standing.entry}.html", "entry.html", partial(_make_context, row, view))


def _make_context(row: Row, table_view: TableView | None) -> dict[str, Any]:
    standing, score = row.standing, row.standing.score
    manifest = None if table_view is None else find_benchmark_manifest(score.benchmark)
    declared = row.card.get("declared", {})
    pairs = [] if table_view is None else [pair for pair in list_pairs(table_view) if row in pair]
    return {
        "row": row,
        "s": score,
        "table_view": table_view,
        "left": standing.left,
        "figures": make_entry_figures(score),
        "card": _list_facts(row),
        "links": [item for item in declared.get("links", ()) if item.startswith(("https://", "http://"))],
        "rescores": [item for item in standing.scores if isinstance(item, RescoreRecord)],
        "file": get_submission_path(standing.submission),
        "split": None if manifest is None else (manifest.full_name, make_split_path(manifest)),
        "slug": make_team_slug(identify_team(standing)),
        "beside": [(pair[pair[0] is row].standing.score.model, make_pair_path(*pair)) for pair in pairs],
    }


def _list_facts(row: Row) -> list[tuple[str, str]]:
    """Return the facts stated in an entry's cards, as (name, value); empty ones are omitted."""
    card, score = row.card, row.standing.score
    declared = card.get("declared", {})
    lines = [
        ("Protocol", f"{score.budget} budget" + (f", {score.steps} steps set by hand" if score.steps else "")),
        ("Seeds", f"{', '.join(map(str, score.seeds))} (the protocol requires {score.protocol_seeds})"),
        ("Selection", f"{score.candidates} candidates, chosen by {score.selection}" if score.candidates > 1 else ""),
        ("Data used besides training", ", ".join(score.touched) or "none"),
        ("Declared training data", _join_names(declared.get("training_data"))),
        ("Declared pretraining", _join_names(declared.get("pretraining"))),
        ("Parameters", f"{card['parameters']:,}" if card.get("parameters") is not None else ""),
        ("Steps trained", f"{card['steps']:,}" if "steps" in card else ""),
        ("Model", _KINDS.get(card.get("kind", ""), card.get("kind", ""))),
        ("Digest of its code", card.get("code", "")),
        ("Device", card.get("device", "")),
        ("Environment", ", ".join(f"{name} {value}" for name, value in card.get("environment", {}).items())),
        ("Spent", f"{card['seconds']:,.0f} s, finished {card.get('finished', '')}" if "seconds" in card else ""),
        *((f"Declared {name}", declared.get(name, "")) for name in ("budget", "protocol")),
        ("Contact", declared.get("contact", "")),
    ]
    return [(name, value) for name, value in lines if value]


def _join_names(names: Sequence[str] | None) -> str:
    return "" if names is None else ", ".join(names) or "none"
