"""The frame around every page of a site: the board's name, and links to the main pages.

The ledger's head is only on the home page and the ledger page, not in the frame. So a new record changes few pages, and
browsers keep the others cached by their entity tags."""

from __future__ import annotations

from dataclasses import dataclass

LINKS = (
    ("Home", "index.html"),
    ("Benchmarks", "benchmarks/index.html"),
    ("Splits", "splits/index.html"),
    ("Compare", "compare/index.html"),
    ("Submit", "submit.html"),
    ("Sealed", "windows.html"),
    ("Claims", "claims.html"),
    ("Ledger", "ledger.html"),
    ("About", "about.html"),
)
"""The main pages; those that a site has are linked from every page."""


@dataclass(frozen=True)
class Frame:
    """The frame of a site's pages. name: the board's name; paths: all files of the site."""

    name: str
    paths: frozenset[str]

    @property
    def links(self) -> list[tuple[str, str]]:
        """Return the title and path of each main page of this site."""
        return [(title, path) for title, path in LINKS if path in self.paths]

    def section(self, here: str) -> str:
        """Return the main page that the page `here` belongs to: itself, or the index of its folder."""
        folder = here.rpartition("/")[0].partition("/")[0]
        return here if not folder else f"{folder}/index.html"
