"""The words of a table for people: columns, one row of cells per record, and what its brackets mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..plot._panels import (
    apart,
    entries,
    in_percent,
    in_words,
    meaning_of_intervals,
    metric_in_words,
    one_line,
)
from ..scoring.record import Score
from ..statistics.interval import measured

SCORES = ("ID", "OOD", "gap", "worst-group score")
"""Columns of scores with their intervals."""


@dataclass(frozen=True)
class Grid:
    """Plain text, nothing escaped: `rows` has a cell for each of `columns`; `numbers` are the columns of numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    numbers: tuple[str, ...] = SCORES


def grid(records: Sequence[Score]) -> Grid:
    """One row per record, in their order; the worst group's columns only where a record has one."""
    worst = ("worst group", SCORES[3]) if any(record.worst_group for record in records) else ()
    columns = ("benchmark", "kind", "metric", "model", "seeds", "selection", *SCORES[:3], *worst)
    cells = [_cells(record, entry) for record, entry in zip(records, entries(records), strict=True)]
    rows = tuple(tuple(one_line(row[column]) for column in columns) for row in cells)
    return Grid(columns, rows, _caption(records))


def _cells(record: Score, entry: str) -> dict[str, str]:
    worst = record.worst_group
    found = (record.id, record.ood, record.gap, worst.estimate if worst else None)
    percent = in_percent(record)
    return {
        "benchmark": entry,
        "kind": record.kind,
        "metric": metric_in_words(record),
        "model": record.model,
        "seeds": seeds(record),
        "selection": record.selection,
        **{name: in_words(one, percent) if measured(one) else "" for name, one in zip(SCORES, found, strict=True)},
        "worst group": f"{worst.group} (of {len(worst.groups)})" if worst else "",
    }


def seeds(record: Score) -> str:
    """How many seeds a score has; both numbers where the protocol asks for more."""
    had, asked = len(record.seeds), record.protocol_seeds
    return f"{had} of {asked}" if had < asked else str(had)


def _caption(records: Sequence[Score]) -> str:
    sentences = [f"Brackets: {meaning_of_intervals(records)}."]
    if any(in_percent(record) for record in records):
        sentences.append("Metrics marked (%) are in percent, their gaps in percentage points.")
    if any(record.worst_group for record in records):
        sentences.append("A worst group is the worst of several noisy scores, and so looks worse than it is.")
    return " ".join(filter(None, [*sentences, apart(records)]))
