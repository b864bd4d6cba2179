"""Many benchmarks at once: each model's mean normalised score and interquartile mean, and how benchmarks concur.

Only tables of the protocol as published take part (its own steps, the first selection rule it allows), those of the
full and of the quick budget apart. A model is a name of a team: where a team has entered it twice in one table, the
later entry counts, never the better one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.scoring.chance import scale
from ...benchmarks.statistics.aggregate import Aggregates, aggregate
from ...benchmarks.statistics.concurrence import Concurrence, concurrences
from ...benchmarks.statistics.normalised import Scale, Summary
from ...benchmarks.statistics.sample import Sample
from ..entries import Standing
from .row_scores import EntryRows
from .standings import Table
from .table_view import TableView


@dataclass(frozen=True)
class SuiteTable:
    """The aggregate of every model over the benchmarks in `found.over` under a budget, and the concurrence of each two
    of them. without: benchmarks that take no part, with the reason."""

    budget: str
    found: Aggregates
    concurrences: tuple[Concurrence, ...]
    without: dict[str, str]

    def record(self) -> dict[str, Any]:
        """Plain JSON."""
        return (
            {"budget": self.budget}
            | self.found.to_dict()
            | {
                "without": self.without,
                "concurrence": [one.to_dict() for one in self.concurrences],
            }
        )

    def concurrence(self, left: str, right: str) -> Concurrence | None:
        """That of two benchmarks, in whichever order; None of one with itself."""
        pair = {left, right}
        return next((one for one in self.concurrences if {one.left, one.right} == pair), None)


@dataclass(frozen=True)
class Summarised:
    """Of an entry's rows what an aggregate needs."""

    ood: Summary


def suite_tables(views: Sequence[TableView], rows: Mapping[str, EntryRows | Summarised]) -> tuple[SuiteTable, ...]:
    """The aggregates over all tables of the published protocol, one a budget that has two benchmarks or more. rows: of
    the tables' entries."""
    published = [one for one in views if as_published(one.table)]
    budgets = sorted({one.table.budget for one in published})
    made = (_suite_table(budget, [one for one in published if one.table.budget == budget], rows) for budget in budgets)
    return tuple(one for one in made if one is not None)


def _suite_table(
    budget: str, views: Sequence[TableView], rows: Mapping[str, EntryRows | Summarised]
) -> SuiteTable | None:
    scores: dict[str, dict[str, Sample | Summary]] = {}
    scales: dict[str, Scale] = {}
    without: dict[str, str] = {}
    for one in views:
        table = one.table
        level = scale(find_benchmark(table.benchmark))
        if level is None:
            without[table.benchmark] = f"{table.metric} has no level of chance"
            continue
        scores[table.benchmark] = {who(row.standing): rows[row.standing.entry].ood for row in _latest(one, rows)}
        scales[table.benchmark] = level
    if len(scores) < 2:
        return None
    values = {
        name: {entry: scales[name].span * _mean(sample) for entry, sample in found.items()}
        for name, found in scores.items()
    }
    return SuiteTable(budget, aggregate(scores, scales), tuple(concurrences(values)), without)


def as_published(table: Table) -> bool:
    """Whether a table is of the protocol as published, in this version: its full or its quick form."""
    if not table.current or table.steps is not None:
        return False
    return table.selection == find_benchmark(table.benchmark).rule(None).name


def who(standing: Standing) -> str:
    """A model as an aggregate names it: with its team, where there is one."""
    model, team = str(standing.score.model), standing.team
    return f"{model} ({team})" if team else model


def _latest(table_view: TableView, rows: Mapping[str, EntryRows | Summarised]) -> list[Any]:
    """The rows of a table that have row scores, in the order of submission."""
    known = [row for row in table_view.rows if row.standing.entry in rows]
    return sorted(known, key=lambda row: (row.standing.time, row.standing.entry))


def _mean(sample: Sample | Summary) -> float:
    return sum(sample.per_seed) / len(sample.per_seed)
