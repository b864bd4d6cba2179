"""Aggregates over benchmarks: each model's mean normalised score and interquartile mean, and the concurrence of
benchmarks.

Only tables of the published protocol are included (its own steps, its first permitted selection rule), with separate
aggregates for the full and the quick budget. A model is a model name of a team: if a team has entered it twice in a
table, the later entry counts, not the better one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.scoring.score import make_scale
from ...benchmarks.statistics.aggregate import Aggregates, Scale, Summary, aggregate
from ...benchmarks.statistics.concurrence import Concurrence, compute_concurrences
from ...benchmarks.statistics.sample import Sample
from ..entries import ScoredEntry
from .table import Table


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
