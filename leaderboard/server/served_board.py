"""The board that a server shows. The ledger is always current. Tables and pages are computed in the background for a
recent record, so that only requests before the first tables have to wait.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from threading import Condition, Event, Lock, RLock, Thread
from typing import Annotated, Any

import tomli_w
from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from ...core.clock import Stopwatch
from ...core.errors import FarshiftError, Unavailable
from ...core.files import compute_file_sha256
from ..board import Board
from ..client import make_board_entry
from ..entries import Entry, read_valid_entries
from ..ledger import Record
from ..operations.export import make_public_card
from ..publish.site import Site
from ..storage.board_files import list_public_files
from ..storage.readers import CARD, LEDGER
from ..tables.snapshot import Snapshot, take_snapshot
from ..teams import make_display_names
from .accounts import HTTPProblem
from .answers import ResponseBody, detect_media

POLL = 0.5
"""Seconds between two checks of the ledger for records that other processes appended."""
FIRST = 60
"""Seconds that a request waits for the first tables of a board."""
PAGES = 2000
"""Maximum number of pages that a server process caches; further pages are rendered for each request."""

log = logging.getLogger("farshift.server")


class History:
    """The first records of a ledger, and what follows from them. items: entries as JSON, by name."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records, self.head = tuple(records), records[-1]
        self.items: dict[str, dict[str, Any]] = {}

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """All entries by name, in the ledger's order."""
        return read_valid_entries(self.records)

    @cached_property
    def team_names(self) -> dict[tuple[str, str], str]:
        """The display name of each team, by name and key."""
        return make_display_names((entry.team, entry.team_key) for entry in self.entries.values())

    @cached_property
    def files(self) -> dict[str, str]:
        """The sha256 of each file that is public now (the files of an export), by path."""
        return list_public_files(self.records)

    @cached_property
    def lines(self) -> ResponseBody:
        """The ledger's lines as in an export."""
        return ResponseBody(b"".join(record.line() + b"\n" for record in self.records), detect_media(LEDGER))


class RenderedBoard:
    """A board's tables and pages at one record, cached until the ledger grows. A page is rendered on its first request.
    marker: the hash of the record, and the settings that tables depend on."""

    def __init__(self, history: History, view: Board, snapshot: Snapshot, marker: tuple[str, str]) -> None:
        self.history, self.view, self.snapshot, self.marker = history, view, snapshot, marker
        site = Site(snapshot, view, files="")
        self.frame, self._files = site.frame, site.pages
        self._bodies: dict[str, ResponseBody] = {}
        self._lock = RLock()
        # The home page is rendered in advance, all other pages on request.
        for path in self._files:
            if "/" not in path or path.startswith("static/"):
                self.page(path)

    def get_cached_page(self, path: str) -> ResponseBody | None:
        """Return a page if it is already rendered."""
        return self._bodies.get(path)

    def page(self, path: str) -> ResponseBody | None:
        """Return a page, rendering it if necessary; None if there is no such page."""
        if path not in self._files:
            return None
        return self.keep(path, lambda: ResponseBody(self._files[path].render(), detect_media(path)))

    def keep(self, name: str, make: Callable[[], ResponseBody]) -> ResponseBody:
        """Return a body that is made only once, unless there are too many."""
        with self._lock:
            body = self._bodies.get(name) or make()
            if len(self._bodies) < PAGES:
                self._bodies[name] = body
        return body


class ServedBoard:
    """A board, read by many threads. `start` begins to compute its tables in the background. ready: the newest tables
    and pages; None if there are none yet. problem: why they cannot be computed."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.problem = ""
        self.ready: RenderedBoard | None = None
        self._history = History(board.committed_records())
        self._reading, self._there = Lock(), Condition()
        self._checked: dict[str, tuple[int, ...]] = {}
        self._stop = Event()
        self._thread = Thread(target=self._watch, name="farshift-tables", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(30)

    def history(self) -> History:
        """Return the current ledger."""
        if self.board.ledger.head_hash() != self._history.head.hash:
            with self._reading:
                self._history = History(self.board.committed_records())
        return self._history

    def shown(self, wait: float = FIRST) -> RenderedBoard:
        """Return the newest computed tables and pages, waiting for the first ones. Raises 503 on timeout."""
        if self.ready is None:
            with self._there:
                self._there.wait_for(lambda: self.ready is not None or bool(self.problem), wait)
        if self.ready is None:
            raise HTTPProblem(503, self.problem or "the tables are being computed: try again in a minute", 10)
        return self.ready

    def describe_entry(self, history: History, entry: Entry) -> dict[str, Any] | None:
        """Return an entry of a history with its newest score as JSON; None if the score's file is missing or was
        changed."""
        if entry.entry not in history.items:
            try:
                standing = self.board.standing_of(entry)
                team = history.team_names[entry.team, entry.team_key]
                history.items[entry.entry] = make_board_entry(standing, team).to_dict()
            except Unavailable:
                raise
            except FarshiftError as error:
                log.error("%s", error)
                return None
        return history.items[entry.entry]

    def file(self, path: str, digest: str) -> Path | None:
        """Return the path of a file that a record names with this sha256; None if it is missing or was changed."""
        file = self.board.file(path)
        if file is None:
            self.board.settle()  # its record was appended a moment ago
            file = self.board.file(path)
        if file is None:
            return None
        stat = file.stat()
        signature = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if self._checked.get(path) != signature:
            if compute_file_sha256(file) != digest:
                log.error("%s was changed: run farshift board verify to list what differs", path)
                return None
            self._checked[path] = signature
        return file

    def export(self, path: str) -> ResponseBody | None:
        """Return the board's card or ledger as in an export."""
        if path == CARD:
            return ResponseBody(tomli_w.dumps(make_public_card(self.board)).encode(), detect_media(CARD))
        return self.history().lines if path == LEDGER else None

    def _watch(self) -> None:
        """Recompute tables and pages when the ledger grows, until `close`."""
        while not self._stop.is_set():
            try:
                self._refresh()
                self.problem = ""
            except Exception as error:  # bad files must not stop the server: it shows the previous tables
                self.problem = "the tables cannot be computed: the server's log says why"
                unexpected = not isinstance(error, FarshiftError)
                log.error("the tables of %s could not be computed: %s", self.board.path, error, exc_info=unexpected)
                with self._there:
                    self._there.notify_all()
                self._stop.wait(10)
            self._stop.wait(POLL)

    def _refresh(self) -> None:
        history = self.history()
        view = self.board.at(history.records)
        marker = (history.head.hash, json.dumps([view.baselines(), view.is_open()], sort_keys=True))
        if self.ready is not None and self.ready.marker == marker:
            return
        watch = Stopwatch()
        rendered = RenderedBoard(history, view, take_snapshot(view), marker)
        with self._there:
            self.ready = rendered
            self._there.notify_all()
        log.info("tables at record %d, %.1f s", history.head.seq, watch.seconds())


async def get_served_board(request: Request) -> ServedBoard:
    board: ServedBoard = request.app.state.published
    return board


async def get_rendered_board(request: Request) -> RenderedBoard:
    board: ServedBoard = request.app.state.published
    ready = board.ready
    return await run_in_threadpool(board.shown) if ready is None else ready


Served = Annotated[ServedBoard, Depends(get_served_board)]
Rendered = Annotated[RenderedBoard, Depends(get_rendered_board)]
