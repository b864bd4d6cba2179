"""The about page: what the board measures, why its scores can be trusted, and how to submit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..leaders import WHAT
from ..page import Page

if TYPE_CHECKING:
    from ..site import Site


def pages(site: Site) -> Iterator[Page]:
    """Yield the page."""
    yield Page("about.html", "about.html", lambda: {"board": site.snapshot, "kinds": WHAT})
