"""A page for every entry, also for those that were withdrawn or removed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ...tables.table_view import Row, TableView
from ..page import Page
from ..page_pictures import curve

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
    return Page(f"entries/{row.standing.entry}.html", "entry.html", partial(_context, site, row, table_view))


def _context(site: Site, row: Row, table_view: TableView | None) -> dict[str, Any]:
    return {
        "board": site.snapshot,
        "row": row,
        "s": row.standing.score,
        "table_view": table_view,
        "left": row.standing.left,
        "curve": curve(row.standing.score),
    }
