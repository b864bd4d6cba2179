"""The index of benchmarks by kind of shift, and the aggregates over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ....benchmarks.benchmark import load_benchmarks
from ....splits.manifest import KINDS
from ...tables.table_view import TableView
from ..leaders import WHAT
from ..page import Page
from ..page_graphics import format_score
from ..source_fields import classify_benchmarks
from .benchmark import make_benchmark_path

if TYPE_CHECKING:
    from ..site import Site


def pages(site: Site) -> Iterator[Page]:
    """Yield the index of benchmarks."""
    yield Page("benchmarks/index.html", "benchmarks.html", lambda: _make_context(site))


def _make_context(site: Site) -> dict[str, Any]:
    tables: dict[str, list[TableView]] = {}
    for view in site.snapshot.views:
        tables.setdefault(view.table.benchmark, []).append(view)
    fields = classify_benchmarks(tables)
    kinds = [
        {
            "kind": kind,
            "what": WHAT[kind],
            "rows": [
                _make_row(name, of, fields[name]) for name, of in sorted(tables.items()) if of[0].table.kind == kind
            ],
        }
        for kind in KINDS
    ]
    return {"board": site.snapshot, "kinds": kinds, "without": sorted(set(load_benchmarks()) - set(tables))}


def _make_row(name: str, views: Sequence[TableView], field: str) -> dict[str, Any]:
    """Return a benchmark's row in the index, from its first current table."""
    view = next((table_view for table_view in views if table_view.table.current), views[0])
    first = [row.standing.score.model for row in view.rows if row.rank is not None and row.rank[0] == 1]
    best = view.rows[0].standing.score
    low, high = format_score(best.ood.low, best.bounds), format_score(best.ood.high, best.bounds)
    named = ", ".join(first[:2]) + (f" and {len(first) - 2} more" if len(first) > 2 else "")
    return {
        "name": name,
        "path": make_benchmark_path(name),
        "title": view.table.title,
        "field": field,
        "entries": sum(len(table_view.rows) for table_view in views),
        "leaders": f"{named} ({len(first)} of {view.ranked})" if first else "none ranked",
        "best": f"{format_score(best.ood.value, best.bounds)} [{low}, {high}]",
    }
