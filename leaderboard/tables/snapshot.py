"""All that a board shows, computed once from its ledger: pages, exports and the command line read from it, and compute
nothing. Who shows a board for long keeps the snapshot until the ledger grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...benchmarks.scoring.record import in_words
from ...benchmarks.statistics.normalised import summary
from ...core.errors import UnknownName
from ...core.listings.frame import frame
from ...core.listings.html import table
from ..board_view import BoardView
from ..entries import Standing
from ..ledger import Record
from ..sealed.results import all_results
from ..teams import shown_names
from .field import field_of
from .row_scores import make_rows, rows_of_entries
from .standings import tables
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


def take_snapshot(board: BoardView, benchmark: str = "", baseline: str | None = None) -> Snapshot:
    """What a board shows of all benchmarks, or of one. `baseline`: the model that entries are compared with; by default
    each benchmark's own, as the board's settings.toml says. Raises `UnknownName` where the board has no entry on that
    benchmark, or none of that model there."""
    standings, apart = board.standings(), board.apart()
    on = {one.score.benchmark for one in [*standings, *apart]}
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
    made = tables(_labelled(standings, apart))
    failed = make_rows(board, [row for one in made for row in one.rows])
    views: list[TableView] = []
    summaries: dict[str, Summarised] = {}
    for one in made:
        rows, without = rows_of_entries(board, one.rows, short=True, failed=failed)
        named = baseline or against.get(one.benchmark, "")
        views.append(table_view(one, rows, without, tried, named, field_of(one, rows, arrived)))
        summaries |= {entry: Summarised(summary(found.ood)) for entry, found in rows.items()}
    return Snapshot(
        board.name,
        board.opened,
        records[-1],
        tuple(views),
        tuple(one for one in apart if benchmark in ("", one.score.benchmark)),
        suite_tables(views, summaries),
        tuple(one for one in windows if benchmark in ("", one["terms"]["benchmark"])),
        len(standings),
    )


def _labelled(standings: Sequence[Standing], apart: Sequence[Standing]) -> list[Standing]:
    """The entries under the names that are shown of their teams."""
    shown = shown_names([*standings, *apart])
    return [replace(one, team=shown[one.team, one.team_key]) for one in standings]
