"""All that a board shows, read once: pages, exports and the command line read from it, and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...benchmarks.scoring.record import in_words
from ...benchmarks.statistics.normalised import summary
from ...benchmarks.statistics.remembered import Remembered
from ...core.errors import UnknownName
from ...core.listings.frame import frame
from ...core.listings.html import table
from ..board_view import BoardView
from ..entries import Standing
from ..ledger import Record
from ..sealed.results import all_results
from ..teams import shown_names
from .field import field_of
from .kept_tables import KeptTables
from .row_scores import RowsInMemory, make_rows, rows_of_entries
from .standings import Table, tables
from .suite_table import SuiteTable, Summarised, suite_tables
from .table_view import TableView, table_view

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Snapshot:
    """A board as it stands at the ledger's record `head`. views: its tables; apart: entries that are in none, with the
    reason; suites: the aggregates over its benchmarks; windows: what its sealed draws have come to."""

    name: str
    opened: str
    head: Record
    views: tuple[TableView, ...]
    apart: tuple[Standing, ...]
    suites: tuple[SuiteTable, ...]
    windows: tuple[dict[str, Any], ...]
    entries: int

    def record(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "board": self.name,
            "head": {"seq": self.head.seq, "time": self.head.time, "hash": self.head.hash},
            "tables": [one.record() for one in self.views],
            "apart": [
                {
                    "entry": one.entry,
                    "model": one.score.model,
                    "benchmark": one.score.benchmark,
                    "team": one.team,
                    **{name: getattr(one.left, name) for name in ("kind", "reason", "time")},
                }
                for one in self.apart
            ],
            "suites": [one.record() for one in self.suites],
            "windows": list(self.windows),
        }

    def _repr_html_(self) -> str:
        rows = [
            {
                "table": view.table.heading,
                "rank": "" if row.rank is None else "-".join(map(str, dict.fromkeys(row.rank))),
                "model": row.standing.score.model,
                "team": row.standing.team,
                **{name.upper(): in_words(getattr(row.standing.score, name)) for name in ("id", "ood", "gap")},
                "ties": row.ties,
            }
            for view in self.views
            for row in view.rows
        ]
        return table(rows, self.name)

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row for each entry in its table. `MissingExtra` without pandas."""
        placed = ("benchmark", "budget", "steps", "selection", "metric", "identity")
        return frame(
            [
                {name: getattr(view.table, name) for name in placed} | row.record()
                for view in self.views
                for row in view.rows
            ]
        )


@dataclass(frozen=True)
class Seen:
    """A table as it is shown, and of each of its entries that has rows what an aggregate over benchmarks needs."""

    view: TableView
    summaries: dict[str, Summarised]


class Memory:
    """What was worked out of a board before (`tables/live.py`): a snapshot takes from it what is as it was. most: the
    most bytes of rows that are kept in memory between two snapshots; kept: tables that are kept on disk."""

    def __init__(self, most: int = 0, kept: KeptTables | None = None) -> None:
        self.kept = kept
        self.known = Remembered()
        self.rows = RowsInMemory(most)


def take_snapshot(
    board: BoardView, benchmark: str = "", baseline: str | None = None, memory: Memory | None = None
) -> Snapshot:
    """What a board shows of all benchmarks, or of one. `baseline`: the model that entries are compared with; by default
    each benchmark's own, as the board's settings.toml says. `memory`: what was worked out before of the same board.
    Raises `UnknownName` where the board has no entry on that benchmark, or none of that model there."""
    memory = memory or Memory()
    standings = board.standings()
    on = {one.score.benchmark for one in [*standings, *board.apart()]}
    if benchmark and benchmark not in on:
        raise UnknownName("benchmark of the board's entries", benchmark, on)
    standings = [one for one in standings if benchmark in ("", one.score.benchmark)]
    models = {one.score.model for one in standings}
    if baseline and baseline not in models:
        raise UnknownName("model of the tables shown", baseline, models)
    against = board.baselines()
    # Whether a window is open now is the clock's to say, and would change pages that nothing happened to.
    windows = [{name: value for name, value in one.items() if name != "state"} for one in all_results(board)]
    records = board.records()
    tried = board.attempts()
    arrived = {one.entry: place for place, one in enumerate(standings)}
    made = tables(_labelled(standings, board.apart(), memory.known))
    attempts: dict[str, dict[str, int]] = {}
    for (team, identity), count in tried.items():
        attempts.setdefault(identity, {})[team] = count
    inputs = {
        table.identity: (
            table,
            attempts.get(table.identity, {}),
            baseline or against.get(table.benchmark, ""),
        )
        for table in made
    }
    changed = [one for one in made if not memory.known.has(("table", one.identity), inputs[one.identity])]
    places: dict[str, Path] = {}
    if memory.kept is not None:
        places = {one.identity: memory.kept.place(*inputs[one.identity], arrived) for one in changed}
        changed = [one for one in changed if not _kept(places[one.identity], inputs[one.identity], memory)]
    failed = make_rows(board, [row for table in changed for row in table.rows])
    seen = [
        memory.known.of(
            ("table", table.identity),
            inputs[table.identity],
            lambda table=table: _seen(board, table, *inputs[table.identity][1:], arrived, failed, memory),  # type: ignore[misc]
        )
        for table in made
    ]
    if memory.kept is not None:
        anew = {one.identity for one in changed}
        for shown in seen:
            if (identity := shown.view.table.identity) in anew:
                memory.kept.due(places[identity], shown.view, shown.summaries)
    views = tuple(one.view for one in seen)
    summaries = {entry: found for one in seen for entry, found in one.summaries.items()}
    return Snapshot(
        board.name,
        board.opened,
        records[-1],
        views,
        tuple(one for one in board.apart() if benchmark in ("", one.score.benchmark)),
        suite_tables(views, summaries, memory.known),
        tuple(one for one in windows if benchmark in ("", one["terms"]["benchmark"])),
        len(standings),
    )


def _kept(place: Path, inputs: tuple[Table, Mapping[str, int], str], memory: Memory) -> bool:
    """Take a table from the disk where it is kept there."""
    found = None if memory.kept is None else memory.kept.read(place, inputs[0])
    if found is None:
        return False
    memory.known.of(("table", inputs[0].identity), inputs, lambda: Seen(*found))
    return True


def _seen(
    board: BoardView,
    table: Table,
    tried: Mapping[str, int],
    baseline: str,
    arrived: Mapping[str, int],
    failed: Mapping[str, str],
    memory: Memory,
) -> Seen:
    """A table worked out anew. tried: how many entries each team had scored in it; failed: of submissions whose rows
    could not be made, why."""
    rows, without = rows_of_entries(board, table.rows, memory.rows, failed)
    left_out = field_of(table, rows, arrived)
    attempts = {(team, table.identity): count for team, count in tried.items()}
    known = memory.known.within(("table", table.identity))
    view = table_view(table, rows, without, attempts, baseline, left_out, known)
    summaries = {
        entry: known.of(("summary", one.key), None, lambda one=one: Summarised(summary(one.ood)))  # type: ignore[misc]
        for entry, one in rows.items()
    }
    memory.rows.trim()
    return Seen(view, summaries)


def _labelled(standings: Sequence[Standing], apart: Sequence[Standing], known: Remembered) -> list[Standing]:
    """The entries under the names that are shown of their teams."""
    shown = shown_names([*standings, *apart])

    def labelled(one: Standing, team: str) -> Standing:
        return known.of(("labelled", one.entry), (one, team), lambda: replace(one, team=team))

    return [labelled(one, shown[one.team, one.team_key]) for one in standings]
