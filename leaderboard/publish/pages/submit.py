"""How to submit: the commands, and a form for where a server answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...validation.limits import SUBMISSION_BYTES
from ..page import Page

if TYPE_CHECKING:
    from ..site import Site

EXAMPLE = "scan/length"
"""The benchmark of the example where the board has none of its own."""


def pages(site: Site) -> Iterator[Page]:
    """The one page."""
    yield Page("submit.html", "submit.html", lambda: _make_context(site))


def _make_context(site: Site) -> dict[str, Any]:
    current = [view.table.benchmark for view in site.snapshot.views if view.table.current]
    return {
        "board": site.snapshot,
        "key": site.key,
        "example": current[0] if current else EXAMPLE,
        "limit": SUBMISSION_BYTES >> 20,
    }
