"""The first page: who leads on which kind of shift, and every model in a table that can be searched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..home_rows import home_rows
from ..leaders import by_kind, leads
from ..page import Page

if TYPE_CHECKING:
    from ..site import Site

SAID = (("none", "none"), ("declared", "declared"), ("unknown", "not said"))
"""What a card can say of other training data, as values and in words."""

SIZES = (
    ("1m", "under 1 million"),
    ("100m", "under 100 million"),
    ("10b", "under 10 billion"),
    ("more", "more"),
    ("unknown", "not said"),
)
"""Classes of network sizes, in parameters. static/home.js has their ends."""


def pages(site: Site) -> Iterator[Page]:
    """The first page."""
    yield Page("index.html", "index.html", lambda: _context(site))


def _context(site: Site) -> dict[str, Any]:
    rows = home_rows(site.snapshot)
    columns = by_kind(rows)
    return {
        "board": site.snapshot,
        "rows": rows,
        "columns": columns,
        "leads": leads(rows),
        "kinds": [(kind, f"{kind} ({count})") for kind, count in columns.items()],
        "fields": _same({name for row in rows for name in row.fields}),
        "budgets": _same({row.budget for row in rows}),
        "protocols": _same({row.protocol for row in rows}),
        "said": SAID,
        "sizes": SIZES,
    }


def _same(values: set[str]) -> list[tuple[str, str]]:
    """Choices that are called what they are, sorted."""
    return [(value, value) for value in sorted(values)]
