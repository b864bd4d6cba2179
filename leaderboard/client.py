"""Read a board in a folder, an export or a server, and submit to it: `farshift.Board`.

The client checks a server's responses against its ledger: the hash chain and the signatures must be valid, the ledger
must extend the one that this user last saw, and it must contain the record that a response refers to. The scores
themselves are not checked: `farshift board verify` recomputes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ..benchmarks.scoring.record import format_estimate
from ..benchmarks.statistics.interval import read_interval
from ..core.documents import parse_json
from ..core.errors import BadData, FarshiftError, UnknownName
from ..core.listings import Listing, render_table, to_data_frame
from ..core.text import format_count
from .entries import ScoredEntry, read_valid_entries
from .ledger import Record
from .operations.submit import submit_at
from .sealed.results import list_window_results
from .storage.http import fetch, is_url
from .storage.readers import UrlReader, open_board_view
from .tables.snapshot import take_snapshot
from .teams import make_display_names

if TYPE_CHECKING:
    import pandas as pd


class Board:
    """A board at a location: its folder, an export of it, or an http(s) address of an export or of `farshift board
    serve`.

    token: access token for submissions, from the board's operator; by default `FARSHIFT_TOKEN`.

    >>> from farshift.leaderboard.board import Board as Folder
    >>> _ = Folder.init("our-board", "Our board")
    >>> board = Board("our-board")
    >>> board.name, len(board.entries()), board.standings().record()["tables"]
    ('Our board', 0, [])
    """

    def __init__(self, location: Path | str, token: str = "") -> None:
        self.location, self.token = str(location), token
        self._url = find_server(self.location) if is_url(self.location) else ""
        self._records: list[Record] = []

    def __repr__(self) -> str:
        return f"Board({self.location!r})"

    @property
    def name(self) -> str:
        """The board's title."""
        if self._url:
            return str(self._get("")["name"])
        with open_board_view(self.location) as view:
            return view.name

    def standings(self, benchmark: str = "") -> Standings:
        """Return the tables: `record()` is plain JSON, `to_pandas()` a data frame with a row per entry. For a folder or
        an export they are computed locally; a server returns its own. Raises `UnknownName` for a benchmark without
        entries."""
        if self._url:
            answer = self._get("standings")
            on = {item["benchmark"] for item in [*answer["tables"], *answer["apart"]]}
            if benchmark and benchmark not in on:
                raise UnknownName("benchmark of the board's entries", benchmark, on)
            tables = [table for table in answer["tables"] if benchmark in ("", table["benchmark"])]
            return Standings(answer | {"tables": tables})
        with open_board_view(self.location) as view:
            return Standings(take_snapshot(view, benchmark).record())

    def entries(self, benchmark: str = "", kind: str = "", team: str = "", model: str = "") -> Listing[BoardEntry]:
        """Return the entries in the ledger's order, including withdrawn and removed ones."""
        filters = {"benchmark": benchmark, "kind": kind, "model": model}
        if self._url:
            entries = [read_board_entry(entry, self.location) for entry in self._get("entries")["entries"]]
        else:
            with open_board_view(self.location) as view:
                order = {record: number for number, record in enumerate(read_valid_entries(view.records()))}
                every = sorted([*view.standings(), *view.removed_entries()], key=lambda entry: order[entry.entry])
            teams = make_display_names((entry.team, entry.team_key) for entry in every)
            entries = [make_board_entry(entry, teams[entry.team, entry.team_key]) for entry in every]
        fitting = [
            entry
            for entry in entries
            if all(value in ("", getattr(entry, name)) for name, value in filters.items())
            and team in ("", entry.team, entry.team_key)
        ]
        return Listing(fitting, "run", _format_entry)  # an entry is a run of a submission

    def entry(self, name: str) -> BoardEntry:
        """Return an entry by name. Raises `UnknownName` if there is none."""
        entries = {entry.entry: entry for entry in self.entries()}
        if name not in entries:
            raise UnknownName("entry", name, entries)
        return entries[name]

    def windows(self) -> list[dict[str, Any]]:
        """Return the sealed windows with their states, as plain JSON."""
        if self._url:
            windows: list[dict[str, Any]] = self._get("windows")["windows"]
            return windows
        with open_board_view(self.location) as view:
            return list_window_results(view)

    def submit(self, file: Path | str) -> list[str]:
        """Submit a file from `farshift pack`. Returns its entries, also if it was submitted before. Raises
        `BadSubmission` with a list of problems if it does not validate."""
        return submit_at(self.location, Path(file), self.token)[0]

    def _get(self, path: str) -> dict[str, Any]:
        """A server's response, after checking that the record to which it refers is in the server's ledger and the
        ledger extends the one that this user saw before."""
        answer = fetch(f"{self._url}/api/v1/{path}", MOST_BYTES)
        if answer.status != 200:
            raise FarshiftError(f"{answer.url} answered {answer.status}: {answer.error}")
        content, head = answer.json(), answer.json().get("head")
        if not isinstance(head, dict) or not isinstance(head.get("seq"), int) or not isinstance(head.get("hash"), str):
            raise BadData(f"{self._url}: a response does not name the ledger record that it refers to")
        seq = head["seq"]
        if seq >= len(self._records):
            with TemporaryDirectory(prefix="farshift-board-") as folder:
                self._records = UrlReader(self._url, Path(folder)).records()
        if not 0 <= seq < len(self._records) or self._records[seq].hash != head["hash"]:
            raise FarshiftError(f"{self._url}: a response refers to record {seq}, which is not in the server's ledger")
        return content


MOST_BYTES = 1 << 28
"""Maximum number of bytes of a response."""


def find_server(url: str) -> str:
    """Return the address of the server at a URL; empty if there is no server, only a static export."""
    url = url.rstrip("/")
    try:
        answer = parse_json(fetch(f"{url}/api/v1/", MOST_BYTES).content, dict)
    except ValueError:
        return ""
    key = answer.get("key")
    return url if isinstance(key, str) and len(key) == 64 else ""


class BoardEntry(BaseModel):
    """One run of a submission. run: its number in the submission; kind: of shift; team: its display name; team_key: its
    public key, empty if the submission is not signed; steps: training steps, if they differ from the budget's;
    submission: sha256 of the zip; scorer: version of the scorer of its newest score; entry_identity: that of its table;
    id, ood: its scores; left: if it was taken out of its table: kind (withdrawn, removed), reason and time."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    entry: str
    run: int
    benchmark: str
    kind: str
    model: str
    team: str
    team_key: str
    name: str
    note: str
    budget: str
    steps: int | None
    selection: str
    submission: str
    time: str
    reference: bool
    scorer: int
    entry_identity: str
    id: float
    ood: float
    left: dict[str, str] | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return self.model_dump()


def make_board_entry(standing: ScoredEntry, team: str) -> BoardEntry:
    """Create an entry with its team's display name."""
    score = standing.score
    values = {name: getattr(score, name) for name in ("kind", "scorer", "entry_identity")}
    values |= {"team": team, "id": score.id.value, "ood": score.ood.value}
    left = None if standing.left is None else vars(standing.left)
    return BoardEntry.model_validate({**vars(standing), **values, "left": left})


def read_board_entry(answer: Mapping[str, Any], where: str) -> BoardEntry:
    """Parse an entry from a server's response. Raises `BadData` if a field is missing."""
    try:
        return BoardEntry.model_validate(answer)
    except ValidationError as error:
        field = ".".join(map(str, error.errors()[0]["loc"]))
        raise BadData(f"{where}: an entry has no valid {field}: the server runs another version of Farshift") from error


def _format_entry(entry: BoardEntry) -> dict[str, Any]:
    """Return an entry's row in a listing."""
    shown = {name: getattr(entry, name) for name in ("entry", "model", "benchmark", "team")}
    return shown | {"ID": f"{entry.id:.4g}", "OOD": f"{entry.ood:.4g}"}


@dataclass(frozen=True, repr=False)
class Standings:
    """A board's tables."""

    answer: dict[str, Any]

    def __repr__(self) -> str:
        return f"Standings({self.answer['board']}: {format_count(len(self.answer['tables']), 'table')})"

    def record(self) -> dict[str, Any]:
        """Return plain JSON, as printed by `farshift board standings --json`."""
        return self.answer

    def _repr_html_(self) -> str:
        rows = [
            {
                "table": table["benchmark"],
                "rank": "-".join(map(str, dict.fromkeys(row["rank"] or ()))),
                "model": row["model"],
                "team": row["team"],
                **{name.upper(): format_estimate(read_interval(row[name])) for name in ("id", "ood", "gap")},
                "ties": row["ties"],
            }
            for table in self.answer["tables"]
            for row in table["rows"]
        ]
        return render_table(rows, str(self.answer["board"]))

    def to_pandas(self) -> pd.DataFrame:
        """Return a data frame with a row for each entry in its table. Raises `MissingExtra` without pandas."""
        placed = ("benchmark", "budget", "steps", "selection", "metric", "identity")
        return to_data_frame(
            [{name: table[name] for name in placed} | row for table in self.answer["tables"] for row in table["rows"]]
        )
