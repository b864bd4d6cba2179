"""A board's site: pages and the files that they refer to, to be written to a folder or served."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import resources
from pathlib import Path

from ...core.documents import read_json
from ...core.files import translate_os_errors
from ..board_view import BoardView
from ..exports import make_export_files
from ..exports._table import list_rows
from ..ledger import Record
from ..tables.snapshot import Snapshot, take_snapshot
from ..validation.limits import SUBMISSION_BYTES
from . import benchmarks, compare, entries, home, ledger
from .page import INDEX, Asset, Frame, Page, get_environment

SITE = "site"
"""The folder of a board's site, inside the board's folder."""

WRITTEN = ".pages.json"
"""The list of files that were written to a site's folder, so that outdated ones can be deleted."""

EXAMPLE = "scan/length"
"""The benchmark of the example on how to submit, if the board has no entries."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


def build_site(board: BoardView, out: Path | str | None = None) -> Path:
    """Write the pages of a board to `out` (its `site/` by default). Returns the path of the index."""
    get_environment()  # report a missing package before rows are read
    own = board.path / SITE
    where = own if out is None else Path(out)
    files = "../" if where.resolve() == own.resolve() else None
    return write_site(Site(take_snapshot(board), board, files), where)


@dataclass(frozen=True)
class Site:
    """The data of a board's pages. view: the board of the snapshot; None for a snapshot alone, which has no pages about
    the ledger. files: the relative path from the pages to the board's files; None if they are not beside them."""

    snapshot: Snapshot
    view: BoardView | None = None
    files: str | None = None

    @cached_property
    def records(self) -> list[Record]:
        """The ledger up to the snapshot's record; empty without a board."""
        return [] if self.view is None else self.view.records()[: self.snapshot.head.seq + 1]

    @property
    def key(self) -> str:
        """The board's public key; empty without a board."""
        return "" if self.view is None else str(self.view.card["key"])

    @cached_property
    def pages(self) -> dict[str, Page | Asset]:
        """All files of the site by path, sorted and not yet rendered."""
        board = self.snapshot
        pages = [
            *_list_plain_pages(self),
            *home.list_pages(board),
            *benchmarks.list_pages(board),
            *entries.list_pages(board, self.records),
            *compare.list_pages(board, self.view),
            *ledger.list_pages(board, self.records, self.key),
        ]
        assets = [*_list_assets(), *_list_downloads(board)]
        frame = Frame(board, frozenset([page.path for page in pages] + [asset.path for asset in assets]), self.files)
        files: list[Page | Asset] = [*assets, *(replace(page, frame=frame) for page in pages)]
        return {item.path: item for item in sorted(files, key=lambda item: item.path)}

    @property
    def frame(self) -> Frame | None:
        """What its pages share."""
        index = self.pages[INDEX]
        return index.frame if isinstance(index, Page) else None

    def rendered(self) -> Iterator[tuple[str, bytes]]:
        """Yield the relative path and the bytes of every file. The index comes last."""
        for path in sorted(self.pages, key=lambda path: path == INDEX):
            yield path, self.pages[path].render()


def _list_plain_pages(site: Site) -> Iterator[Page]:
    """Yield the pages whose content is in their templates."""
    yield Page("about.html", "about.html", lambda: {"kinds": benchmarks.WHAT})
    yield Page("statistics.html", "statistics.html", dict)
    current = [view.benchmark for view in site.snapshot.views if view.current]
    context = {"key": site.key, "example": (current or [EXAMPLE])[0], "limit": SUBMISSION_BYTES >> 20}
    yield Page("submit.html", "submit.html", lambda: context)


def _list_assets() -> list[Asset]:
    folder = resources.files(__package__.rpartition(".")[0]) / "static"
    items = (item for item in folder.iterdir() if item.is_file() and not item.name.startswith("."))
    return [Asset(f"static/{item.name}", item.read_bytes) for item in items]


def _list_downloads(board: Snapshot) -> Iterator[Asset]:
    """Yield the entries of each table, and of all tables, as files with unrounded numbers."""
    for name, views in [("all", board.views), *((view.anchor, (view,)) for view in board.views)]:
        if views:
            shown = replace(board, views=views)
            for suffix in ("csv", "json", "parquet"):
                yield Asset(f"tables/{name}.{suffix}", partial(_render_download, shown, suffix))


def _render_download(board: Snapshot, suffix: str) -> bytes:
    if suffix == "json":
        return json.dumps(list_rows(board), indent=1, ensure_ascii=False).encode()
    (content,) = make_export_files(board, suffix).values()
    return content


def write_site(site: Site, where: Path) -> Path:
    """Write a site to the folder `where`. Unchanged files are not written again, and pages of an earlier site that no
    longer exist are deleted."""
    listing = where / WRITTEN
    try:
        known = read_json(listing, list)
    except (OSError, ValueError):
        known = []
    for name, content in site.rendered():
        _write_file(where / name, content)
    for stale in {name for name in known if isinstance(name, str) and _NAME.fullmatch(name)} - set(site.pages):
        (where / stale).unlink(missing_ok=True)
    _write_file(listing, json.dumps(sorted(site.pages), indent=0).encode())
    return where / INDEX


def _write_file(path: Path, content: bytes) -> None:
    """Write a file atomically unless it has this content, without flushing to the disk: a page lost in a power cut is
    written the next time."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with translate_os_errors(path, "write the pages elsewhere"):
        if path.is_file() and path.read_bytes() == content:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(content)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
