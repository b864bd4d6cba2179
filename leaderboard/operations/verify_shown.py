"""Of a verification the part about what a board shows beside its ledger: its card, the records' times, the rows that it
keeps, its pages."""

from __future__ import annotations

import io
import re
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any, Protocol

import numpy as np

from ...core.clock import now
from ...core.errors import FarshiftError, Unavailable, first_line
from ...core.version import version
from ...loaders.remote.http import HttpFile
from ..board_view import Reading, derived_here
from ..entries import Entry
from ..ledger import Record
from ..publish.page import Page
from ..publish.shown_rows import lacking
from ..publish.site import INDEX, Site, made_from, rows_shown
from ..storage.readers import BoardReader
from ..tables.row_scores import rows_place
from ..tables.snapshot import take_snapshot

SLACK = timedelta(minutes=1)
"""How far the clocks of machines that write to one board may be apart, and a board's opening from its card's."""

PAGE_BYTES = 1 << 26
"""The most bytes that are fetched for a page."""

AHEAD = timedelta(days=1)
"""How far a board's clock may be ahead of this machine's."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError),
    *(RuntimeError, KeyError),  # zipfile's: a password, a compression that it does not know, a member that is not there
    *(ValueError, TypeError, tokenize.TokenError, OverflowError, MemoryError),  # NumPy's: a header, a shape, no archive
)
"""What `numpy.load` raises for an archive whose bytes were changed."""


class Pages(Protocol):
    """Where a board's pages are read from. place: how messages call it."""

    place: str

    def page(self, name: str) -> bytes | None:
        """A page by its path; None where there is none."""
        ...

    def names(self) -> list[str]:
        """All files there, as far as they can be listed."""
        ...


class PageFolder:
    """Pages in a folder."""

    def __init__(self, folder: Path, place: str = "") -> None:
        self.folder, self.place = folder, place or str(folder)

    def page(self, name: str) -> bytes | None:
        path = self.folder / name
        return path.read_bytes() if path.is_file() and not path.is_symlink() else None

    def names(self) -> list[str]:
        found = [path.relative_to(self.folder) for path in self.folder.rglob("*") if not path.is_dir()]
        return sorted(path.as_posix() for path in found if not path.name.startswith("."))


class PageUrl:
    """Pages behind an http(s) address."""

    def __init__(self, url: str) -> None:
        self.place = url.rstrip("/")

    def page(self, name: str) -> bytes | None:
        file = HttpFile.open(f"{self.place}/{name}")
        if file.size > PAGE_BYTES:
            raise Unavailable(f"{file.url} has {file.size} bytes; at most {PAGE_BYTES} are taken")
        return file.read(0, file.size, Event())

    def names(self) -> list[str]:
        return []


def verify_card(card: Mapping[str, Any], records: Sequence[Record]) -> list[str]:
    """What board.toml says otherwise than the ledger's first record."""
    if not records:
        return []
    problems = []
    told = records[0].body.get("name")
    if card.get("name") != told:
        problems.append(f"board.toml has the name {card.get('name')!r}, and the board was opened as {told!r}")
    opened, first = _moment(card.get("opened")), _moment(records[0].time)
    if opened is None or (first is not None and abs(opened - first) > SLACK):
        said = str(card.get("opened"))[:40]
        problems.append(f"board.toml says that it was opened at {said!r}, and the ledger at {records[0].time}")
    return problems


def verify_times(records: Sequence[Record]) -> list[str]:
    """Records whose times no board writes: not a time, before the record before them, or yet to come."""
    problems = []
    latest: datetime | None = None
    soon = datetime.fromisoformat(now()) + AHEAD
    for record in records:
        time = _moment(record.time)
        if time is None:
            problems.append(f"record {record.seq} has the time {record.time[:40]!r}, which is none")
            continue
        if time > soon:
            problems.append(f"record {record.seq} is of {record.time}, which is yet to come")
        elif latest is not None and time < latest - SLACK:
            problems.append(f"record {record.seq} is of {record.time}, before the records that it follows")
        latest = time if latest is None else max(time, latest)
    return problems


def _moment(time: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(time) if isinstance(time, str) and _TIME.fullmatch(time) else None
    except ValueError:
        return None


def verify_rows(derived: Path, entries: Sequence[Entry]) -> list[str]:
    """The rows that a board keeps and that are not those computed from its submissions: rank sets come from them."""
    problems = []
    for one in entries:
        if not one.scores:
            continue
        where = (one.entry, one.submission, one.scores[-1].entry_identity)
        kept, made = rows_place(derived, *where), rows_place(derived_here(), *where)
        if kept.is_file() and made.is_file() and not _same(kept.read_bytes(), made.read_bytes()):
            problems.append(f"{one}: derived/rows/{kept.name} is not what its submission gives: delete it")
    return problems


def _same(kept: bytes, made: bytes) -> bool:
    if kept == made:
        return True
    try:  # another version of zlib packs the same otherwise
        with (
            np.load(io.BytesIO(kept), allow_pickle=False) as left,
            np.load(io.BytesIO(made), allow_pickle=False) as right,
        ):
            return set(left) == set(right) and all(_equal(left[name], right[name]) for name in left)
    except _UNREADABLE:
        return False


def _equal(left: Any, right: Any) -> bool:
    return bool(left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes())


def verify_pages(copy: BoardReader, records: Sequence[Record], pages: Pages) -> tuple[list[str], list[str], list[str]]:
    """What pages show otherwise than the ledger gives, at the record that they say they were written at; why they could
    not be made again; and remarks. copy: with its good files only."""
    try:
        index = pages.page(INDEX)
    except Unavailable as error:
        return [f"{pages.place}/{INDEX} could not be had: {error}"], [], []
    said = made_from(index) if index is not None else None
    again = f"write them again: farshift board site {copy.place}"
    if index is None:
        return [f"{pages.place} has no {INDEX}, and other pages"] if pages.names() else [], [], []
    if said is None:
        return [], [f"{pages.place}: its pages do not say which version wrote them, from which record: {again}"], []
    writer, seq, head = said
    if seq >= len(records) or records[seq].hash != head:
        return (
            [f"{pages.place}/{INDEX} says record {seq} with the head {head}, which this ledger does not have"],
            [],
            [],
        )
    if writer != version():
        return [], [f"{pages.place}: its pages were written by Farshift {writer}, this is {version()}: {again}"], []
    remarks = []
    if seq < len(records) - 1:
        remarks.append(f"{pages.place} shows the board as of record {seq}, and the ledger has {len(records)}: {again}")
    try:
        read = Reading(copy, records[: seq + 1], derived_here())
        site = Site(take_snapshot(read), read, rows_shown(index))
        due = dict(site.rendered())
    except (FarshiftError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        return [], [f"{pages.place}: its pages cannot be made from what is wrong here: {first_line(error)}"], remarks
    problems, unread = [], lacking(site.shows_rows_of)
    without = {path for path, page in site.pages.items() if isinstance(page, Page) and page.rows_of in unread}
    if unread:
        remarks.append(
            f"{pages.place}: the pages of {', '.join(unread)} show rows that are not on this disk: not compared"
        )
    for name, page in sorted(due.items()):
        if name in without:
            continue
        try:
            there = pages.page(name)
        except Unavailable as error:
            problems.append(f"{pages.place}/{name} could not be had: {error}")
            continue
        if there is None:
            problems.append(f"{pages.place}/{name} is missing")
        elif there != page:
            problems.append(f"{pages.place}/{name} shows something else than the ledger gives")
    problems += [f"{pages.place}/{name} is no page of this board" for name in pages.names() if name not in due]
    return problems, [], remarks
