"""Standings: entries grouped into tables. Only entries of one identity (manifest, protocol, scorer) share a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...benchmarks.statistics.ranks import Better
from ...core.errors import FarshiftError
from ...splits.manifest import KINDS
from ..entries import ScoredEntry


@dataclass(frozen=True)
class Table:
    """The entries of one identity, by OOD score, best first. The order is not a ranking: see the rank sets.

    current: whether this version of Farshift scores the identity."""

    benchmark: str
    title: str
    kind: str
    budget: str
    steps: int | None
    selection: str
    metric: str
    identity: str
    current: bool
    rows: list[ScoredEntry]

    @property
    def better(self) -> Better:
        return "lower" if self.rows[0].score.better == "lower" else "higher"

    @property
    def protocol(self) -> str:
        """What distinguishes this table from others of its benchmark; empty for the protocol as published."""
        parts = [] if self.budget == "full" else [f"{self.budget} budget"]
        parts += [] if self.steps is None else [f"{self.steps} steps, set by hand"]
        parts += [] if self.selection == "last" else [f"candidates chosen by {self.selection}"]
        return ", ".join([*parts, *([] if self.current else [f"identity {self.identity[:8]}, not of this version"])])

    @property
    def heading(self) -> str:
        """The benchmark, and what distinguishes the table: `scan/length (quick budget)`."""
        return f"{self.benchmark} ({self.protocol})" if self.protocol else self.benchmark

    @property
    def anchor(self) -> str:
        """A name for the table that is safe in URLs and file names."""
        return f"{re.sub('[^a-z0-9]+', '-', self.benchmark.lower()).strip('-')}-{self.identity[:8]}"


def make_tables(standings: Sequence[ScoredEntry]) -> list[Table]:
    """One table per entry identity, sorted by kind of shift, benchmark and budget."""
    known = load_benchmarks()
    grouped: dict[str, list[ScoredEntry]] = {}
    for standing in standings:
        grouped.setdefault(standing.score.entry_identity, []).append(standing)
    table_list = [_make_table(identity, rows, known.get(rows[0].score.benchmark)) for identity, rows in grouped.items()]
    return sorted(
        table_list,
        key=lambda table: (KINDS.index(table.kind), table.benchmark, table.budget, table.steps or 0, table.identity),
    )


def _make_table(identity: str, rows: list[ScoredEntry], benchmark: Benchmark | None) -> Table:
    first = rows[0].score
    sign = -1 if first.better == "higher" else 1
    return Table(
        benchmark=first.benchmark,
        title=first.benchmark if benchmark is None else benchmark.definition.title,
        kind=first.kind,
        budget=first.budget,
        steps=first.steps,
        selection=first.selection,
        metric=first.metric,
        identity=identity,
        current=benchmark is not None and _is_current(benchmark, rows[0]),
        rows=sorted(rows, key=lambda row: (sign * row.score.ood.value, row.score.model, row.entry)),
    )


OWN = "if it is your own, set FARSHIFT_PATH to the folder that defines it"


def explain_unknown(benchmark: str) -> str:
    """Why nothing can be computed of entries on a benchmark that this installation does not know."""
    return f"benchmark {benchmark} is not defined here ({OWN})"


def find_outdated(standings: Sequence[ScoredEntry]) -> dict[str, str]:
    """The entries whose identity this version of Farshift does not score, each with the reason."""
    known = load_benchmarks()
    of_identity: dict[tuple[str, str], str] = {}  # entries of one identity have one benchmark, budget and rule
    for standing in standings:
        name, identity = standing.score.benchmark, standing.score.entry_identity
        if (name, identity) in of_identity:
            continue
        if name not in known:
            of_identity[name, identity] = explain_unknown(name)
        elif not _is_current(known[name], standing):
            of_identity[name, identity] = "it has an older identity, which this version does not score"
        else:
            of_identity[name, identity] = ""
    reasons = {item.entry: of_identity[item.score.benchmark, item.score.entry_identity] for item in standings}
    return {entry: reason for entry, reason in reasons.items() if reason}


def _is_current(benchmark: Benchmark, standing: ScoredEntry) -> bool:
    """Whether an entry's identity is the benchmark's present one."""
    score = standing.score
    try:
        return benchmark.identity(score.budget, score.steps, score.selection) == score.entry_identity
    except FarshiftError:  # its split or selection rule is unknown here
        return False
