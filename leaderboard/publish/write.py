"""Write a board's site to a folder."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from ...core.files import translate_os_errors
from ..board_view import BoardView
from ..tables.snapshot import take_snapshot
from .environment import get_environment
from .site import INDEX, Site

SITE = "site"
"""The folder of a board's site, inside the board's folder."""

WRITTEN = ".pages.json"
"""The list of files that were written to a site's folder, so that outdated ones can be deleted."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


def build_site(board: BoardView, out: Path | str | None = None) -> Path:
    """Write the pages of a board to `out` (its `site/` by default). Returns the path of the index."""
    get_environment()  # report a missing package before rows are read
    return write_site(Site(take_snapshot(board), board), Path(out) if out is not None else board.path / SITE)


def write_site(site: Site, where: Path) -> Path:
    """Write a site to the folder `where`. Unchanged files are not written again, and pages of an earlier site that no
    longer exist are deleted."""
    before = _list_written_files(where)
    names = []
    for name, content in site.rendered():
        names.append(name)
        if not _has_content(where / name, content):
            _write_page(where / name, content)
    for stale in sorted(before - set(names)):
        (where / stale).unlink(missing_ok=True)
    listing = json.dumps(sorted(names), indent=0).encode()
    if not _has_content(where / WRITTEN, listing):
        _write_page(where / WRITTEN, listing)
    return where / INDEX


def _list_written_files(where: Path) -> set[str]:
    """Return the files that an earlier site wrote to a folder, ignoring paths outside it in a modified list."""
    names = {path.relative_to(where).as_posix() for path in (where / "entries").glob("*.html")}
    try:
        listing = json.loads((where / WRITTEN).read_bytes())
    except (OSError, ValueError):
        return names
    known = listing if isinstance(listing, list) else []
    return names | {name for name in known if isinstance(name, str) and _NAME.fullmatch(name)}


def _write_page(path: Path, page: bytes) -> None:
    """Write a page atomically, without flushing to the disk: a page lost in a power cut is written the next time."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with translate_os_errors(path, "write the pages elsewhere"):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(page)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _has_content(path: Path, page: bytes) -> bool:
    try:
        return path.read_bytes() == page
    except OSError:
        return False
