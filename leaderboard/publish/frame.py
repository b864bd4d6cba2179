"""What every page of a site has around it: the board's name, and the links to its main pages.

The ledger's head is not of it: it is on the first page and on the ledger's. So a new record changes few pages, and
browsers keep the others by their entity tags."""

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
"""The main pages: those of them that a site has are linked from everywhere."""


@dataclass(frozen=True)
class Frame:
    """name: the board's; paths: every file of the site."""

    name: str
    paths: frozenset[str]

    @property
    def links(self) -> list[tuple[str, str]]:
        """The main pages that there are: title and path."""
        return [(title, path) for title, path in LINKS if path in self.paths]

    def section(self, here: str) -> str:
        """The main page that the page `here` belongs to: itself, or the index of its folder."""
        folder = here.rpartition("/")[0].partition("/")[0]
        return here if not folder else f"{folder}/index.html"
