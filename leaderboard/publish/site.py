"""The board as static pages: an index, and a page per entry. The same board always gives the same bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import MissingExtra
from ...core.files import plain_disk_errors
from ...core.listings.visible import LINES, visible
from ...core.version import version
from ..board_view import BoardView
from ..tables.snapshot import Snapshot, take_snapshot
from ..tables.table_view import Row, TableView
from . import page_pictures as pictures

if TYPE_CHECKING:
    from jinja2 import Environment


SITE, INDEX = "site", "index.html"


def build(board: BoardView, out: Path | str | None = None) -> Path:
    """Write the pages of a board into `out` (its `site/` by default). Returns the path of the index."""
    _pages()  # what it lacks is said before rows are read
    return write_site(take_snapshot(board), Path(out) if out is not None else board.path / SITE)


def write_site(found: Snapshot, where: Path) -> Path:
    """Write the pages of a snapshot into the folder `where`. What is there already is not written again; pages of
    entries that are no more go."""
    written = set()
    for name, page in rendered(found):
        path = where / name
        written.add(path)
        if not _holds(path, page):
            _write(path, page)
    for left in set((where / "entries").glob("*.html")) - written:
        left.unlink()
    return where / INDEX


def rendered(found: Snapshot) -> Iterator[tuple[str, bytes]]:
    """Every page of a snapshot: its path below the site's folder, and its bytes. The index comes last."""
    pages = _pages()
    entry = pages.get_template("entry.html")
    for table_view in found.views:
        for row in table_view.rows:
            yield _place(row.standing.entry), entry.render(**_entry(found, row, table_view)).encode()
    for one in found.apart:
        yield _place(one.entry), entry.render(**_entry(found, Row(standing=one), None)).encode()
    index = pages.get_template(INDEX).render(
        board=found,
        now=[table_view for table_view in found.views if table_view.table.current],
        old=[table_view for table_view in found.views if not table_view.table.current],
    )
    yield INDEX, index.encode()


def made_from(index: bytes) -> tuple[str, int, str] | None:
    """Of an index page the version that wrote it, and the record that the ledger was at: its number and hash. None
    where it does not say."""
    writer = re.search(rb'<meta name="generator" content="Farshift ([^"<>]{1,60})">', index)
    head = re.search(rb'<meta name="farshift-ledger" content="([0-9]{1,12}) ([0-9a-f]{64})">', index)
    return (writer[1].decode("utf-8", "replace"), int(head[1]), head[2].decode()) if writer and head else None


def _place(entry: str) -> str:
    return f"entries/{entry}.html"


def _write(path: Path, page: bytes) -> None:
    """Write a page in one piece. It is not flushed to the disk: what a power cut takes is written the next time."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with plain_disk_errors(path, "write the pages elsewhere"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(page)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _holds(path: Path, page: bytes) -> bool:
    try:
        return path.read_bytes() == page
    except OSError:
        return False


def _entry(found: Snapshot, row: Row, table_view: TableView | None) -> dict[str, Any]:
    """What an entry's page shows."""
    return {
        "board": found,
        "row": row,
        "s": row.standing.score,
        "table_view": table_view,
        "left": row.standing.left,
        "curve": pictures.curve(row.standing.score),
    }


def _seen(value: Any) -> Any:
    """A value as a page may show it. What is marked as safe was made here."""
    return visible(value, LINES) if type(value) is str else value


@cache
def _pages() -> Environment:
    try:
        from jinja2 import DictLoader, Environment, StrictUndefined
    except ImportError as error:
        raise MissingExtra("the board's pages", "board") from error
    folder = files(__package__.rpartition(".")[0]) / "templates"
    texts = {item.name: item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith((".html", ".css"))}
    pages = Environment(
        loader=DictLoader(texts),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,  # codespell:ignore finalize
    )
    pages.filters |= {
        "score": pictures.shown,
        "finer": pictures.finer,
        "signed": pictures.signed,
        "words": pictures.words,
    }
    pages.tests["measured"] = pictures.is_measured
    pages.globals |= {
        "version": version(),
        "scale_of": pictures.scale_of,
        "rank_bar": pictures.rank_bar,
        "letter_columns": pictures.letter_columns,
        "split": pictures.split,
        "unit": pictures.Scale(-1.0, 1.0),
        "STRIP": pictures.STRIP,
        "BAR": pictures.BAR,
    }
    return pages
