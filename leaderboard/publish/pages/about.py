"""About the board: what it measures, how it can be trusted, and how to take part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..leaders import WHAT
from ..page import Page

if TYPE_CHECKING:
    from ..site import Site


def pages(site: Site) -> Iterator[Page]:
    """The page."""
    yield Page("about.html", "about.html", lambda: {"board": site.snapshot, "kinds": WHAT})
