"""Read a board in a folder, an export or a server, and submit to it: `farshift.Board`.

The client checks a server's responses against its ledger: the hash chain and the signatures must be valid, the ledger
must extend the one that this user last saw, and it must contain the record that a response refers to. The scores
themselves are not checked: `farshift board verify` recomputes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...core.errors import FarshiftError, UnknownName
from ...core.listings import Listing
from ..board_view import BoardView
from ..entries import read_valid_entries
from ..operations.locations import is_url, open_board_view, submit_at
from ..sealed.results import list_window_results
from ..tables.snapshot import Snapshot, take_snapshot
from .entries import BoardEntry, make_board_entries, make_listing, read_board_entry
from .server import RemoteStandings, find_server


class Board:
    """A board at a location: its folder, an export of it (a folder or a zip file), or an http(s) address of an export
    or of `farshift board serve`.

    token: access token for submissions, from the board's operator; by default `FARSHIFT_TOKEN`.

    >>> from farshift.leaderboard.board import Board as Folder
    >>> _ = Folder.init("our-board", "Our board")
    >>> board = Board("our-board")
    >>> board.name, len(board.entries()), board.standings().record()["tables"]
    ('Our board', 0, [])
    """

    def __init__(self, location: Path | str, token: str = "") -> None:
        self.location, self.token = str(location), token
        self._server = find_server(self.location) if is_url(self.location) else None

    def __repr__(self) -> str:
        return f"Board({self.location!r})"

    @property
    def name(self) -> str:
        """The board's title."""
        if self._server is not None:
            return str(self._server.start()["name"])
        with self._viewed() as view:
            return view.name

    def standings(self, benchmark: str = "") -> Snapshot | RemoteStandings:
        """Return the tables: `record()` is plain JSON, `to_pandas()` a data frame with a row per entry. For a folder or
        an export they are computed locally; a server returns its own."""
        if self._server is not None:
            return self._server.standings(benchmark)
        with self._viewed() as view:
            return take_snapshot(view, benchmark)

    def entries(self, benchmark: str = "", kind: str = "", team: str = "", model: str = "") -> Listing[BoardEntry]:
        """Return the entries in the ledger's order, including withdrawn and removed ones."""
        filters = {"benchmark": benchmark, "kind": kind, "team": team, "model": model}
        if self._server is not None:
            answer = self._server.entries({name: value for name, value in filters.items() if value})
            return make_listing(read_board_entry(entry, self.location) for entry in answer)
        with self._viewed() as view:
            order = {record: number for number, record in enumerate(_list_submitted(view))}
            every = sorted([*view.standings(), *view.removed_entries()], key=lambda entry: order[entry.entry])
        entries = make_board_entries(every)
        return make_listing(
            entry
            for entry in entries
            if all(value in ("", getattr(entry, name)) for name, value in filters.items() if name != "team")
            and team in ("", entry.team, entry.team_key)
        )

    def entry(self, name: str) -> BoardEntry:
        """Return an entry by name. Raises `UnknownName` if there is none."""
        if self._server is not None:
            return read_board_entry(self._server.entry(name)["entry"], self.location)
        entries = {entry.entry: entry for entry in self.entries()}
        if name not in entries:
            raise UnknownName("entry", name, entries)
        return entries[name]

    def windows(self) -> list[dict[str, Any]]:
        """Return the sealed windows with their states, as plain JSON."""
        if self._server is not None:
            return self._server.windows()
        with self._viewed() as view:
            return list_window_results(view)

    def submit(self, file: Path | str) -> list[str]:
        """Submit a file from `farshift pack`. Returns its entries, also if it was submitted before. Raises
        `BadSubmission` with a list of problems if it does not validate."""
        if Path(self.location).is_file():
            raise FarshiftError(f"{self.location} is a copy of a board: submit to the board itself")
        return submit_at(self.location, Path(file), self.token)[0]

    @contextmanager
    def _viewed(self) -> Iterator[BoardView]:
        with open_board_view(self.location) as view:
            yield view


def _list_submitted(view: BoardView) -> list[str]:
    return list(read_valid_entries(view.records()))
