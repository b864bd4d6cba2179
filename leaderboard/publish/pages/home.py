"""The home page: the leaders on each kind of shift, and a searchable table of all models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..home_rows import make_home_rows
from ..leaders import count_by_kind, find_leads
from ..page import Page

if TYPE_CHECKING:
    from ..site import Site

DATA_DECLARATIONS = (("none", "none"), ("declared", "declared"), ("unknown", "not stated"))
"""What a card can declare about other training data, as (value, text)."""

SIZES = (
    ("1m", "under 1 million"),
    ("100m", "under 100 million"),
    ("10b", "under 10 billion"),
    ("more", "more"),
    ("unknown", "not stated"),
)
"""Classes of network sizes by parameters. static/home.js has the same limits."""


def pages(site: Site) -> Iterator[Page]:
    """Yield the home page."""
    yield Page("index.html", "index.html", lambda: _make_context(site))


def _make_context(site: Site) -> dict[str, Any]:
    rows = make_home_rows(site.snapshot)
    columns = count_by_kind(rows)
    return {
        "board": site.snapshot,
        "rows": rows,
        "columns": columns,
        "leads": find_leads(rows),
        "kinds": [(kind, f"{kind} ({count})") for kind, count in columns.items()],
        "fields": _make_choices({name for row in rows for name in row.fields}),
        "budgets": _make_choices({row.budget for row in rows}),
        "protocols": _make_choices({row.protocol for row in rows}),
        "said": DATA_DECLARATIONS,
        "sizes": SIZES,
    }


def _make_choices(values: set[str]) -> list[tuple[str, str]]:
    """Return choices whose text equals their value, sorted."""
    return [(value, value) for value in sorted(values)]
