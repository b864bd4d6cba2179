"""The words of a table for people: columns, one row of cells per record, and what its brackets mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..plot._panels import (
    collapse_whitespace,
    describe_incomparable,
    describe_intervals,
    format_estimate,
    format_metric,
    is_percent,
    name_entries,
)
from ..scoring.record import Score
from ..statistics.interval import is_measured

SCORES = ("ID", "OOD", "gap", "worst-group score")
"""Columns of scores with their intervals."""


@dataclass(frozen=True)
class Grid:
    """Plain text, nothing escaped: `rows` has a cell for each of `columns`; `numbers` are the columns of numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    numbers: tuple[str, ...] = SCORES


def make_grid(records: Sequence[Score]) -> Grid:
    """One row per record, in their order; the worst group's columns only where a record has one."""
    worst = ("worst group", SCORES[3]) if any(record.worst_group for record in records) else ()
    columns = ("benchmark", "kind", "metric", "model", "seeds", "selection", *SCORES[:3], *worst)
    cells = [_format_cells(record, entry) for record, entry in zip(records, name_entries(records), strict=True)]
    rows = tuple(tuple(collapse_whitespace(row[column]) for column in columns) for row in cells)
    return Grid(columns, rows, _format_caption(records))


def _format_cells(record: Score, entry: str) -> dict[str, str]:
    worst = record.worst_group
    estimates = (record.id, record.ood, record.gap, worst.estimate if worst else None)
    percent = is_percent(record)
    return {
        "benchmark": entry,
        "kind": record.kind,
        "metric": format_metric(record),
        "model": record.model,
        "seeds": format_seeds(record),
        "selection": record.selection,
        **{
            name: format_estimate(estimate, percent) if is_measured(estimate) else ""
            for name, estimate in zip(SCORES, estimates, strict=True)
        },
        "worst group": f"{worst.group} (of {len(worst.groups)})" if worst else "",
    }


def format_seeds(record: Score) -> str:
    """How many seeds a score has; both numbers where the protocol asks for more."""
    available, required = len(record.seeds), record.protocol_seeds
    return f"{available} of {required}" if available < required else str(available)


def _format_caption(records: Sequence[Score]) -> str:
    sentences = [f"Brackets: {describe_intervals(records)}."]
    if any(is_percent(record) for record in records):
        sentences.append("Metrics marked (%) are in percent, their gaps in percentage points.")
    if any(record.worst_group for record in records):
        sentences.append("A worst group is the worst of several noisy scores, and so looks worse than it is.")
    return " ".join(filter(None, [*sentences, describe_incomparable(records)]))
