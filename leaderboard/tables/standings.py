"""Standings: entries grouped into tables. Only entries of one identity (manifest, protocol, scorer) share a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...benchmarks.statistics.ranks import Better
from ...core.errors import FarshiftError, UnknownName
from ...splits.manifest import KINDS
from ..entries import ScoredEntry


@dataclass(frozen=True)
class Table:
    """The entries of one identity, by OOD score, best first. The order is not a ranking: see the rank sets.

    current: whether this version of Farshift scores the identity; notes and audit: those of the benchmark."""

    benchmark: str
    title: str
    kind: str
    budget: str
    steps: int | None
    selection: str
    metric: str
    identity: str
    current: bool
    notes: str
    audit: str
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
        return ", ".join([*parts, *([] if self.current else [f"older identity {self.identity[:8]}"])])

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
    title, notes, current, audit = first.benchmark, "", False, ""
    if benchmark is not None:
        title, notes = benchmark.definition.title, benchmark.definition.notes
        current, audit = _check_identity(benchmark, identity, rows[0])
    sign = -1 if first.better == "higher" else 1
    return Table(
        benchmark=first.benchmark,
        title=title,
        kind=first.kind,
        budget=first.budget,
        steps=first.steps,
        selection=first.selection,
        metric=first.metric,
        identity=identity,
        current=current,
        notes=notes,
        audit=audit,
        rows=sorted(rows, key=lambda row: (sign * row.score.ood.value, row.score.model, row.entry)),
    )


def find_outdated(standings: Sequence[ScoredEntry]) -> dict[str, str]:
    """The entries whose identity this version of Farshift does not score, each with the reason."""
    known = load_benchmarks()
    of_identity: dict[tuple[str, str], str] = {}  # entries of one identity have one benchmark, budget and rule
    reasons = {}
    for standing in standings:
        name, identity = standing.score.benchmark, standing.score.entry_identity
        if (name, identity) not in of_identity:
            of_identity[name, identity] = _explain_outdated(known, standing)
        if reason := of_identity[name, identity]:
            reasons[standing.entry] = reason
    return reasons


def _explain_outdated(known: Mapping[str, Benchmark], standing: ScoredEntry) -> str:
    name = standing.score.benchmark
    if name not in known:
        return str(UnknownName("benchmark", name, known))
    current, _ = _check_identity(known[name], standing.score.entry_identity, standing)
    return "" if current else "it has an older identity, which this version does not score"


def _check_identity(benchmark: Benchmark, identity: str, standing: ScoredEntry) -> tuple[bool, str]:
    """Whether an identity is the benchmark's present one, and a description of its split's audit."""
    score = standing.score
    try:
        here = benchmark.identity(score.budget, score.steps, score.selection)
        return here == identity, benchmark.manifest.audit_summary()
    except FarshiftError:  # its split or selection rule is unknown here
        return False, ""
