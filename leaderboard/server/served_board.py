"""The board that a server shows. The ledger is always current. Tables and pages are computed in the background for a
recent record, so that only requests before the first tables have to wait.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
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
from ..board_view import BoardView
from ..client import make_board_entry
from ..entries import Entry, read_valid_entries
from ..ledger import Record
from ..operations.export import make_public_card
from ..operations.locations import open_board_view
from ..publish.site import Site
from ..storage.board_files import find_sealed_answers, list_named_files
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


class RenderedBoard:
    """A board's tables and pages at one record, cached until the ledger grows. A page is rendered on its first request.
    marker: the hash of the record, and the settings that tables depend on."""

    def __init__(self, history: History, view: BoardView, snapshot: Snapshot, marker: tuple[str, str]) -> None:
        self.history, self.view, self.snapshot, self.marker = history, view, snapshot, marker
        site = Site(snapshot, view)
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
    """A board at a location (see `locations.open_board_view`), read by many threads. `start` begins to watch it.

    board: the writable board if the location is its folder; None for a copy. ready: the newest computed tables and
    pages; None if there are none yet."""

    def __init__(self, location: str, poll: float = POLL) -> None:
        self.location, self.poll = location, poll
        self.board: Board | None = None
        self.problem = ""
        self._exit = ExitStack()
        self._view: BoardView | None = None
        self._history: History | None = None
        self.ready: RenderedBoard | None = None
        self._opening, self._there = Lock(), Condition()
        self._checked: dict[str, tuple[int, ...]] = {}
        self._stop = Event()
        self._thread = Thread(target=self._watch, name="farshift-tables", daemon=True)

    def start(self) -> None:
        """Open the board and start to compute its tables in the background."""
        self._open()
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(30)
        self._exit.close()

    def history(self) -> History:
        """Return the current ledger."""
        if self._view is None:
            self._open()
        assert self._history is not None
        if self.board is not None and self.board.ledger.head_hash() != self._history.head.hash:
            with self._opening:
                self._history = History(self.board.committed_records(), self._history.key)
        return self._history

    def shown(self, wait: float = FIRST) -> RenderedBoard:
        """Return the newest computed tables and pages, waiting for the first ones. Raises 503 on timeout."""
        if self.ready is None:
            with self._there:
                self._there.wait_for(lambda: self.ready is not None or bool(self.problem), wait)
        if self.ready is None:
            why = self.problem or "the tables are being computed: try again in a minute"
            raise HTTPProblem.make(503, why, 10)
        return self.ready

    def view(self, history: History) -> BoardView:
        """Return the board at the last record of a history."""
        if self.board is None:
            assert self._view is not None
            return self._view
        return self.board.at(history.records)

    def describe_entry(self, history: History, entry: Entry) -> dict[str, Any] | None:
        """Return an entry of a history with its newest score as JSON; None if the score's file is missing or was
        changed."""
        assert self._view is not None
        if entry.entry not in history.items:
            try:
                standing = self._view.standing_of(entry)
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
        assert self._view is not None
        file = self._view.file(path)
        if file is None and self.board is not None:
            self.board.settle()  # its record was appended a moment ago
            file = self._view.file(path)
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
            assert self._view is not None
            return ResponseBody(tomli_w.dumps(make_public_card(self._view)).encode(), detect_media(CARD))
        return self.history().lines if path == LEDGER else None

    def _open(self) -> None:
        with self._opening:
            if self._view is not None:
                return
            view = self._exit.enter_context(open_board_view(self.location))
            self.board = view if isinstance(view, Board) else None
            self._history = History(view.committed_records(), str(view.card["key"]))
            self._view = view

    def _watch(self) -> None:
        """Recompute tables and pages when the ledger grows, until `close`."""
        while not self._stop.is_set():
            try:
                self._refresh()
                self.problem = ""
            except Exception as error:  # bad files must not stop the server: it shows the previous tables
                self.problem = "the tables cannot be computed: the server's log says why"
                unexpected = not isinstance(error, FarshiftError)
                log.error("the tables of %s could not be computed: %s", self.location, error, exc_info=unexpected)
                with self._there:
                    self._there.notify_all()
                self._stop.wait(10)
            self._stop.wait(self.poll)

    def _refresh(self) -> None:
        history = self.history()
        view = self.view(history)
        marker = (history.head.hash, json.dumps([view.baselines(), view.is_open()], sort_keys=True))
        if self.ready is not None and self.ready.marker == marker:
            return
        watch = Stopwatch()
        rendered = RenderedBoard(history, view, take_snapshot(view), marker)
        with self._there:
            self.ready = rendered
            self._there.notify_all()
        log.info("tables at record %d, %.1f s", history.head.seq, watch.seconds())


class History:
    """The first records of a ledger. key: the board's first public key."""

    def __init__(self, records: Sequence[Record], key: str) -> None:
        self.records, self.key = tuple(records), key
        self.items: dict[str, dict[str, Any]] = {}

    @property
    def head(self) -> Record:
        return self.records[-1]

    @property
    def size(self) -> int:
        return len(self.records)

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """All entries by name, in the ledger's order."""
        return read_valid_entries(self.records)

    @cached_property
    def team_names(self) -> dict[tuple[str, str], str]:
        """The display name of each team, by name and key."""
        return make_display_names(self.entries.values())

    def file(self, path: str) -> str | None:
        """Return the sha256 of a file that is public now (the files of an export), or None for another path."""
        return None if path in self._answers else self._named.get(path)

    @cached_property
    def _named(self) -> dict[str, str]:
        return list_named_files(self.records)

    @cached_property
    def _answers(self) -> set[str]:
        return find_sealed_answers(self.records)

    @cached_property
    def lines(self) -> ResponseBody:
        """The ledger's lines as in an export."""
        return ResponseBody(b"".join(record.line() + b"\n" for record in self.records), detect_media(LEDGER))


async def get_served_board(request: Request) -> ServedBoard:
    board: ServedBoard = request.app.state.published
    return board


async def get_rendered_board(request: Request) -> RenderedBoard:
    board: ServedBoard = request.app.state.published
    ready = board.ready
    return await run_in_threadpool(board.shown) if ready is None else ready


Served = Annotated[ServedBoard, Depends(get_served_board)]
Rendered = Annotated[RenderedBoard, Depends(get_rendered_board)]
