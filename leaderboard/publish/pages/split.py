"""A page for each split with entries on the board."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ....benchmarks.benchmark import load_benchmarks
from ....core.errors import FarshiftError
from ....splits.manifest import Manifest
from ...tables.table_view import TableView
from ..page import Page
from ..split_card import make_split_card

if TYPE_CHECKING:
    from ..site import Site

BEST = 3
"""Number of entries of each table that the page shows."""


def pages(site: Site) -> Iterator[Page]:
    """Yield the pages of all splits of the board's tables, by name and version, and their list."""
    used: dict[str, tuple[Manifest, list[TableView]]] = {}
    for view in site.snapshot.views:
        manifest = find_benchmark_manifest(view.table.benchmark)
        if manifest is not None:
            used.setdefault(manifest.full_name, (manifest, []))[1].append(view)
    yield Page(
        "splits/index.html", "split_list.html", lambda: _make_list_context(site, [used[name] for name in sorted(used)])
    )
    for name in sorted(used):
        manifest, views = used[name]
        yield Page(make_split_path(manifest), "split.html", partial(_make_context, site, manifest, views))


def make_split_path(manifest: Manifest) -> str:
    """Return the path of a split's page."""
    return f"splits/{manifest.name}/v{manifest.definition.version}.html"


def find_benchmark_manifest(benchmark: str) -> Manifest | None:
    """Return the manifest of a benchmark's split; None if this version does not know the benchmark or the split."""
    known = load_benchmarks().get(benchmark)
    try:
        return None if known is None else known.manifest
    except FarshiftError:
        return None


def _make_list_context(site: Site, used: list[tuple[Manifest, list[TableView]]]) -> dict[str, Any]:
    rows = [
        {
            "manifest": manifest,
            "path": make_split_path(manifest),
            "parts": [(part, pin.rows) for part, pin in manifest.definition.parts.items()],
            "entries": sum(len(view.rows) for view in views),
        }
        for manifest, views in used
    ]
    return {"board": site.snapshot, "rows": rows}


def _make_context(site: Site, manifest: Manifest, views: list[TableView]) -> dict[str, Any]:
    over = sorted(
        name
        for name, benchmark in load_benchmarks().items()
        if benchmark.definition.split in (manifest.full_name, manifest.name)
    )
    return {
        "board": site.snapshot,
        **make_split_card(manifest),
        "over": over,
        "tables": [(view, view.rows[:BEST]) for view in views if view.table.current],
    }
