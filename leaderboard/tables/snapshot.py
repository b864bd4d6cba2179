"""A snapshot of everything that a board shows, computed once from its ledger. Pages, exports and the command line only
read it. A long-running process keeps the snapshot until the ledger grows.

Aggregates over benchmarks are of each model: its mean normalised score and interquartile mean, and the concurrence of
benchmarks. Only tables of the published protocol are included (its own steps, its first permitted selection rule), with
separate aggregates for the full and the quick budget. A model is a model name of a team: if a team has entered it twice
in a table, the later entry counts, not the better one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...benchmarks.benchmark import find_benchmark, load_benchmarks
from ...benchmarks.scoring.score import make_scale
from ...benchmarks.statistics.aggregate import Aggregates, Scale, Summary, aggregate, summarise_sample
from ...benchmarks.statistics.concurrence import Concurrence, compute_concurrences
from ...benchmarks.statistics.sample import Sample
from ...core.errors import UnknownName
from ...core.progress import log_message
from ..board_view import EXPERIMENTS, BoardView
from ..entries import ScoredEntry
from ..ledger import Record
from ..sealed.results import list_window_results
from ..teams import make_display_names
from .ranking import find_unranked_entries
from .row_scores import read_entry_rows
from .table import Table, group_entries, make_table


@dataclass(frozen=True)
class SuiteTable:
    """The aggregate of every model over the benchmarks in `aggregates.over` under a budget, and the concurrence of each
    pair of benchmarks. without: benchmarks that are not included, with the reason."""

    budget: str
    aggregates: Aggregates
    concurrences: tuple[Concurrence, ...]
    without: dict[str, str]

    def record(self) -> dict[str, Any]:
        """Return plain JSON."""
        return (
            {"budget": self.budget}
            | self.aggregates.to_dict()
            | {
                "without": self.without,
                "concurrence": [item.to_dict() for item in self.concurrences],
            }
        )

    def concurrence(self, left: str, right: str) -> Concurrence | None:
        """The concurrence of two benchmarks, in either order; None for a benchmark with itself."""
        pair = {left, right}
        return next((item for item in self.concurrences if {item.left, item.right} == pair), None)


def make_suite_tables(views: Sequence[Table], samples: Mapping[str, Sample | Summary]) -> tuple[SuiteTable, ...]:
    """Aggregate all tables of the published protocol, one aggregate for each budget with two or more benchmarks.
    samples: the OOD rows of the tables' entries, or their summaries."""
    budgets: dict[str, list[Table]] = {}
    for view in views:
        if is_published_protocol(view):
            budgets.setdefault(view.budget, []).append(view)
    suites = (_make_suite_table(budget, budgets[budget], samples) for budget in sorted(budgets))
    return tuple(item for item in suites if item is not None)


def _make_suite_table(
    budget: str, views: Sequence[Table], samples: Mapping[str, Sample | Summary]
) -> SuiteTable | None:
    scores: dict[str, dict[str, Sample | Summary]] = {}
    scales: dict[str, Scale] = {}
    without: dict[str, str] = {}
    values: dict[str, dict[str, float]] = {}
    for view in views:
        name = view.benchmark
        scale = make_scale(find_benchmark(name))
        if scale is None:
            without[name] = f"{view.metric} has no chance level"
            continue
        scales[name], scores[name], values[name] = scale, {}, {}
        # The later of a model's entries replaces the earlier one.
        for row in sorted(view.rows, key=lambda row: (row.standing.time, row.standing.entry)):
            sample = samples.get(row.standing.entry)
            if sample is not None:
                model = format_model_name(row.standing)
                scores[name][model] = sample
                values[name][model] = scale.span * sum(sample.per_seed) / len(sample.per_seed)
    if len(scores) < 2:
        return None
    return SuiteTable(budget, aggregate(scores, scales), tuple(compute_concurrences(values)), without)


def is_published_protocol(table: Table) -> bool:
    """Whether a table is of the published protocol in this version, under the full or quick budget."""
    if not table.current or table.steps is not None:
        return False
    return table.selection == find_benchmark(table.benchmark).rule(None).name


def format_model_name(standing: ScoredEntry) -> str:
    """A model's name in an aggregate: with its team, if there is one."""
    model, team = str(standing.score.model), standing.team
    return f"{model} ({team})" if team else model


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
    if unknown := set(against) - on - set(load_benchmarks()):
        log_message(f"{board.location}: baselines name no benchmark known here: {', '.join(sorted(unknown))}")
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
