"""A snapshot of everything that a board shows, computed once from its ledger. Pages, exports and the command line only
read it. A long-running process keeps the snapshot until the ledger grows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...benchmarks.statistics.aggregate import Summary, summarise_sample
from ...core.errors import UnknownName
from ..board_view import EXPERIMENTS, BoardView
from ..entries import ScoredEntry
from ..ledger import Record
from ..sealed.results import list_window_results
from ..teams import make_display_names
from .ranking import find_unranked_entries
from .row_scores import read_entry_rows
from .suite_table import SuiteTable, make_suite_tables
from .table import Table, group_entries, make_table


@dataclass(frozen=True)
class Snapshot:
    """A board at the ledger's record `head`. views: its tables; apart: entries that are in no table, with the reason;
    suites: the aggregates over its benchmarks; windows: the results of its sealed windows."""

    name: str
    opened: str
    head: Record
    views: tuple[Table, ...]
    apart: tuple[ScoredEntry, ...]
    suites: tuple[SuiteTable, ...]
    windows: tuple[dict[str, Any], ...]
    entries: int

    def record(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "board": self.name,
            "head": {"seq": self.head.seq, "time": self.head.time, "hash": self.head.hash},
            "tables": [item.record() for item in self.views],
            "apart": [
                {
                    "entry": item.entry,
                    "model": item.score.model,
                    "benchmark": item.score.benchmark,
                    "team": item.team,
                    **{name: getattr(item.left, name) for name in ("kind", "reason", "time")},
                }
                for item in self.apart
            ],
            "suites": [item.record() for item in self.suites],
            "windows": list(self.windows),
        }


def take_snapshot(board: BoardView, benchmark: str = "", baseline: str | None = None) -> Snapshot:
    """Compute the snapshot of all benchmarks, or of one. `baseline`: the model that entries are compared with; by
    default each benchmark's own from the board's settings.toml. Raises `UnknownName` if the board has no entry on that
    benchmark, or no entry of that model there."""
    standings, apart = board.standings(), board.removed_entries()
    on = {item.score.benchmark for item in [*standings, *apart]}
    if benchmark and benchmark not in on:
        raise UnknownName("benchmark of the board's entries", benchmark, on)
    standings = [item for item in standings if benchmark in ("", item.score.benchmark)]
    models = {item.score.model for item in standings}
    if baseline and baseline not in models:
        raise UnknownName("model of the tables shown", baseline, models)
    against = board.baselines()
    # Whether a window is open depends on the clock, and would change pages without any event on the board.
    windows = [{name: value for name, value in item.items() if name != "state"} for item in list_window_results(board)]
    records = board.records()
    tried = board.attempts()
    ranks_all = board.kind == EXPERIMENTS
    arrived = {item.entry: index for index, item in enumerate(standings)}
    names = make_display_names((item.team, item.team_key) for item in (*standings, *apart))
    views: list[Table] = []
    summaries: dict[str, Summary] = {}
    for entries in group_entries([replace(item, team=names[item.team, item.team_key]) for item in standings]):
        rows, without = read_entry_rows(board, entries)
        plain = against.get(entries[0].score.benchmark, "")
        unranked = {} if ranks_all else find_unranked_entries(entries, rows, arrived, plain, board.is_open())
        views.append(make_table(entries, rows, without, tried, baseline or plain, unranked))
        summaries |= {entry: summarise_sample(entry_rows.ood) for entry, entry_rows in rows.items()}
    return Snapshot(
        board.name,
        board.opened,
        records[-1],
        tuple(views),
        tuple(item for item in apart if benchmark in ("", item.score.benchmark)),
        make_suite_tables(views, summaries),
        tuple(item for item in windows if benchmark in ("", item["terms"]["benchmark"])),
        len(standings),
    )
