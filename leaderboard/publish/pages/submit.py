"""The submit page: the commands, and an upload form if the page is served by the board's server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...validation.limits import SUBMISSION_BYTES
from ..page import Page

if TYPE_CHECKING:
    from ..site import Site

EXAMPLE = "scan/length"
"""The benchmark of the example if the board has no entries."""


def pages(site: Site) -> Iterator[Page]:
    """Yield the page."""
    yield Page("submit.html", "submit.html", lambda: _make_context(site))


def _make_context(site: Site) -> dict[str, Any]:
    current = [view.table.benchmark for view in site.snapshot.views if view.table.current]
    return {
        "board": site.snapshot,
        "key": site.key,
        "example": current[0] if current else EXAMPLE,
        "limit": SUBMISSION_BYTES >> 20,
    }
