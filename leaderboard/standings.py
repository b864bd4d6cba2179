"""Standings: entries grouped into tables. Only entries of one identity (manifest, protocol, scorer) share a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..benchmarks.benchmark import benchmarks
from ..splits.errors import FarshiftError
from ..splits.manifest import KINDS
from .board import Standing


@dataclass(frozen=True)
class Table:
    """The entries of one identity, by OOD score, best first. The order is no ranking: see the intervals."""

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
    rows: list[Standing]


def tables(standings: list[Standing]) -> list[Table]:
    """One table per entry identity, sorted by kind of shift, benchmark and budget."""
    known = benchmarks()
    grouped: dict[str, list[Standing]] = {}
    for standing in standings:
        grouped.setdefault(standing.score["entry_identity"], []).append(standing)
    found = []
    for identity, rows in grouped.items():
        first = rows[0].score
        benchmark = known.get(first["benchmark"])
        current, title, notes, audit = False, first["benchmark"], "", ""
        if benchmark is not None:
            title, notes = benchmark.definition.title, benchmark.definition.notes
            current, audit = _current(benchmark, identity, first)
        sign = -1 if first["better"] == "higher" else 1
        rows.sort(key=lambda row: (sign * row.score["ood"]["value"], row.score["model"], row.entry))
        found.append(
            Table(
                first["benchmark"],
                title,
                first["kind"],
                first["budget"],
                first["steps"],
                first["selection"],
                first["metric"],
                identity,
                current,
                notes,
                audit,
                rows,
            )
        )
    return sorted(
        found,
        key=lambda table: (KINDS.index(table.kind), table.benchmark, table.budget, table.steps or 0, table.identity),
    )


def _current(benchmark: Any, identity: str, score: dict[str, Any]) -> tuple[bool, str]:
    try:
        return benchmark.identity(
            score["budget"], score["steps"], score["selection"]
        ) == identity, benchmark.manifest.audit_summary()
    except FarshiftError:
        return False, ""
