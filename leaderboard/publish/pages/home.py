"""The first page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..page import Page

if TYPE_CHECKING:
    from ..site import Site


def pages(site: Site) -> Iterator[Page]:
    """The page of all tables."""
    yield Page("index.html", "index.html", lambda: _context(site))


def _context(site: Site) -> dict[str, Any]:
    views = site.snapshot.views
    return {
        "board": site.snapshot,
        "now": [table_view for table_view in views if table_view.table.current],
        "old": [table_view for table_view in views if not table_view.table.current],
    }
