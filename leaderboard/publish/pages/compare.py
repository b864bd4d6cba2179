"""Comparisons: of every current table the pairs among its first entries, and the baseline with each of the next; and
pages to choose from. A server makes the page of any two to five entries (`compare_page`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ....benchmarks.benchmark import find_benchmark
from ....core.errors import FarshiftError, UnknownName
from ...tables.row_frame import row_frame
from ...tables.row_scores import EntryRows, rows_of_entries
from ...tables.table_view import Row, TableView
from ..comparing import EXAMPLES, MOST, compared
from ..figures.severity import severity_curves
from ..page import Page
from ..page_pictures import axis_of
from ..row_contents import code_for, row_contents
from ..shown_rows import credit_of

if TYPE_CHECKING:
    from ..site import Site

FIRST, AGAINST = 3, 10
"""Pairs among so many first entries of a table have a page, and the baseline with so many of the first."""

CHOOSER = "compare/index.html"


def pages(site: Site) -> Iterator[Page]:
    """The list of tables, and of each the page to choose entries from and the pages of its pairs."""
    yield Page(CHOOSER, "compare_list.html", lambda: {"board": site.snapshot, "views": _comparable(site)})
    for view in _comparable(site):
        yield Page(chooser_path(view), "compare_choose.html", partial(_choices, site, view))
        for left, right in pairs_of(view):
            context = partial(_context, site, view, (left, right))
            yield Page(pair_path(left, right), "compare.html", context)


def pairs_of(view: TableView) -> list[tuple[Row, Row]]:
    """The pairs of a table that have a page, each in the order of the table."""
    if not view.table.current:
        return []
    found = list(combinations(range(min(FIRST, len(view.rows))), 2))
    base = [k for k, row in enumerate(view.rows) if view.baseline and row.standing.score.model == view.baseline][:1]
    for k in base:
        found += [(min(k, other), max(k, other)) for other in range(min(AGAINST, len(view.rows))) if other != k]
    return [(view.rows[i], view.rows[j]) for i, j in sorted(set(found))]


def pair_path(left: Row, right: Row) -> str:
    """Where the comparison of a pair lies."""
    return f"compare/{left.standing.entry}-{right.standing.entry}.html"


def compare_page(site: Site, entries: Sequence[str], path: str = "compare/chosen.html") -> Page:
    """The page that compares two to five entries of one table, by their names, as it is served at `path`.
    `FarshiftError` says what keeps them from being compared."""
    wanted = list(dict.fromkeys(entries))
    if not 2 <= len(wanted) <= MOST:
        raise FarshiftError(f"choose two to {MOST} entries, not {len(wanted)}")
    places = {row.standing.entry: (view, row) for view in site.snapshot.views for row in view.rows}
    for name in wanted:
        if name not in places:
            raise UnknownName("entry in a table", name[:40], places)
    views = {places[name][0].table.identity: places[name][0] for name in wanted}
    if len(views) > 1:
        tables = " and ".join(sorted(view.table.heading for view in views.values()))
        raise FarshiftError(f"entries of one table can be compared, not of {tables}")
    (view,) = views.values()
    rows = tuple(row for row in view.rows if row.standing.entry in wanted)
    index = site.pages["index.html"]
    around = index.frame if isinstance(index, Page) else None
    return Page(path, "compare.html", partial(_context, site, view, rows), around)


def chooser_path(view: TableView) -> str:
    """Where entries of a table are chosen."""
    return f"compare/{view.table.anchor}.html"


def _comparable(site: Site) -> list[TableView]:
    return [view for view in site.snapshot.views if view.table.current and len(view.rows) > 1]


def _choices(site: Site, view: TableView) -> dict[str, Any]:
    pairs = [(left, right, pair_path(left, right)) for left, right in pairs_of(view)]
    return {"board": site.snapshot, "view": view, "pairs": pairs, "most": MOST, "first": FIRST, "against": AGAINST}


def _context(site: Site, view: TableView, entries: tuple[Row, ...]) -> dict[str, Any]:
    rows: dict[str, EntryRows] = {}
    frame = None
    if site.view is not None and view.table.current:
        rows, _ = rows_of_entries(site.view, [one.standing for one in entries])
        frame = row_frame(site.view, view.table)
    found = compared(view, entries, rows, frame)
    named = sorted({one for sort in found.rows for one in sort["rows"]})
    scores = [one.standing.score for one in entries]
    contents = row_contents(view.table.benchmark, named)
    return {
        "board": site.snapshot,
        "found": found,
        "view": view,
        "entries": entries,
        "bounds": scores[0].bounds,
        "curves": severity_curves(scores, [str(one.model) for one in scores], axis_of(view.table.benchmark)),
        "contents": contents,
        "credit": credit_of(find_benchmark(view.table.benchmark)) if contents else "",
        "code": code_for(view.table.benchmark, named),
        "examples": EXAMPLES,
    }
