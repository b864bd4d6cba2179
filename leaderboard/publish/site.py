"""A board's site: pages and the files that they refer to, to be written to a folder or served."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module, resources
from pkgutil import iter_modules
from types import ModuleType

from ..board_view import BoardView
from ..ledger import Record
from ..tables.snapshot import Snapshot
from . import pages as kinds
from .frame import Frame
from .page import Asset, File, Page

INDEX = "index.html"


@dataclass(frozen=True)
class Site:
    """The data of a board's pages. view: the board of the snapshot; None for a snapshot alone, which has no pages about
    the ledger."""

    snapshot: Snapshot
    view: BoardView | None = None

    @cached_property
    def records(self) -> list[Record]:
        """The ledger up to the snapshot's record; empty without a board."""
        return [] if self.view is None else self.view.records()[: self.snapshot.head.seq + 1]

    @property
    def key(self) -> str:
        """The board's public key; empty without a board."""
        return "" if self.view is None else str(self.view.card["key"])

    @cached_property
    def models(self) -> dict[str, str]:
        """The model of each entry that has a page, by the entry's name."""
        rows = [row.standing for table_view in self.snapshot.views for row in table_view.rows]
        return {entry.entry: f"{entry.model} on {entry.benchmark}" for entry in [*rows, *self.snapshot.apart]}

    @cached_property
    def pages(self) -> dict[str, File]:
        """All files of the site by path, sorted and not yet rendered."""
        files: dict[str, File] = {asset.path: asset for asset in _list_assets()}
        pages_by_path: dict[str, File] = {}
        for kind in _list_page_modules():
            for page in kind.pages(self):
                if page.path in files or page.path in pages_by_path:
                    raise ValueError(f"two pages have the path {page.path}")
                pages_by_path[page.path] = page
        site_frame = Frame(self.snapshot.name, frozenset({*files, *pages_by_path}))
        framed_pages = {
            path: replace(page, frame=site_frame) if isinstance(page, Page) else page
            for path, page in pages_by_path.items()
        }
        return dict(sorted({**files, **framed_pages}.items()))

    def rendered(self) -> Iterator[tuple[str, bytes]]:
        """Yield the relative path and the bytes of every file. The index comes last."""
        for path, page in self.pages.items():
            if path != INDEX:
                yield path, page.render()
        yield INDEX, self.pages[INDEX].render()


@cache
def _list_page_modules() -> tuple[ModuleType, ...]:
    """The modules of `pages/`, sorted."""
    names = sorted(module.name for module in iter_modules(kinds.__path__) if not module.name.startswith("_"))
    return tuple(import_module(f".{name}", kinds.__name__) for name in names)


@cache
def _list_assets() -> tuple[Asset, ...]:
    """The files of `static/`, sorted."""
    folder = resources.files(__package__.rpartition(".")[0]) / "static"
    items = (item for item in folder.iterdir() if item.is_file() and not item.name.startswith("."))
    return tuple(Asset(f"static/{item.name}", item.read_bytes()) for item in sorted(items, key=lambda item: item.name))
