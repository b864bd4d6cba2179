"""Comparison pages: for each current table, the pairs among its first entries, the baseline with each of the next
entries, and a page to choose entries. A server makes pages for any two to five entries (`make_compare_page`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ....benchmarks.benchmark import find_benchmark
from ....core.errors import FarshiftError, UnknownName
from ...tables.row_frame import read_row_frame
from ...tables.row_scores import EntryRows, read_entry_rows
from ...tables.table_view import Row, TableView
from ..comparison import EXAMPLES, MOST, compare_entries
from ..example_permissions import format_credit
from ..figures.severity import make_severity_figure
from ..page import Page
from ..page_graphics import describe_severity_axis
from ..row_contents import make_row_code, read_row_contents

if TYPE_CHECKING:
    from ..site import Site

FIRST, AGAINST = 3, 10
"""Numbers of first entries of a table that are compared in pairs, and with the baseline."""

CHOOSER = "compare/index.html"


def pages(site: Site) -> Iterator[Page]:
    """Yield the list of tables and, for each table, the page to choose entries and the pages of pairs."""
    yield Page(CHOOSER, "compare_list.html", lambda: {"board": site.snapshot, "views": _list_comparable_views(site)})
    for view in _list_comparable_views(site):
        yield Page(make_chooser_path(view), "compare_choose.html", partial(_make_chooser_context, site, view))
        for left, right in list_pairs(view):
            context = partial(_make_context, site, view, (left, right))
            yield Page(make_pair_path(left, right), "compare.html", context)


def list_pairs(view: TableView) -> list[tuple[Row, Row]]:
    """Return the pairs of a table that have a page, each in the table's order."""
    if not view.table.current:
        return []
    pairs = list(combinations(range(min(FIRST, len(view.rows))), 2))
    base = [k for k, row in enumerate(view.rows) if view.baseline and row.standing.score.model == view.baseline][:1]
    for k in base:
        pairs += [(min(k, other), max(k, other)) for other in range(min(AGAINST, len(view.rows))) if other != k]
    return [(view.rows[i], view.rows[j]) for i, j in sorted(set(pairs))]


def make_pair_path(left: Row, right: Row) -> str:
    """Return the path of a pair's comparison page."""
    return f"compare/{left.standing.entry}-{right.standing.entry}.html"


def make_compare_page(site: Site, entries: Sequence[str], path: str = "compare/chosen.html") -> Page:
    """Return the page at `path` that compares two to five entries of one table, given by name. Raises `FarshiftError`
    if they cannot be compared."""
    names = list(dict.fromkeys(entries))
    if not 2 <= len(names) <= MOST:
        raise FarshiftError(f"choose two to {MOST} entries, not {len(names)}")
    locations = {row.standing.entry: (view, row) for view in site.snapshot.views for row in view.rows}
    for name in names:
        if name not in locations:
            raise UnknownName("entry in a table", name[:40], locations)
    views = {locations[name][0].table.identity: locations[name][0] for name in names}
    if len(views) > 1:
        tables = " and ".join(sorted(view.table.heading for view in views.values()))
        raise FarshiftError(f"choose entries of one table; these belong to {tables}")
    (view,) = views.values()
    rows = tuple(row for row in view.rows if row.standing.entry in names)
    index = site.pages["index.html"]
    site_frame = index.frame if isinstance(index, Page) else None
    return Page(path, "compare.html", partial(_make_context, site, view, rows), site_frame)


def make_chooser_path(view: TableView) -> str:
    """Return the path of the page to choose a table's entries."""
    return f"compare/{view.table.anchor}.html"


def _list_comparable_views(site: Site) -> list[TableView]:
    return [view for view in site.snapshot.views if view.table.current and len(view.rows) > 1]


def _make_chooser_context(site: Site, view: TableView) -> dict[str, Any]:
    pairs = [(left, right, make_pair_path(left, right)) for left, right in list_pairs(view)]
    return {"board": site.snapshot, "view": view, "pairs": pairs, "most": MOST, "first": FIRST, "against": AGAINST}


def _make_context(site: Site, view: TableView, entries: tuple[Row, ...]) -> dict[str, Any]:
    rows: dict[str, EntryRows] = {}
    frame = None
    if site.view is not None and view.table.current:
        rows, _ = read_entry_rows(site.view, [item.standing for item in entries])
        frame = read_row_frame(site.view, view.table)
    comparison = compare_entries(view, entries, rows, frame)
    row_ids = sorted({item for sort in comparison.rows for item in sort["rows"]})
    scores = [item.standing.score for item in entries]
    contents = read_row_contents(view.table.benchmark, row_ids)
    return {
        "board": site.snapshot,
        "found": comparison,
        "view": view,
        "entries": entries,
        "bounds": scores[0].bounds,
        "curves": make_severity_figure(
            scores, [str(item.model) for item in scores], describe_severity_axis(view.table.benchmark)
        ),
        "contents": contents,
        "credit": format_credit(find_benchmark(view.table.benchmark)) if contents else "",
        "code": make_row_code(view.table.benchmark, row_ids),
        "examples": EXAMPLES,
    }
