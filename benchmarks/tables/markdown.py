"""A Markdown table (GitHub Flavored Markdown, section 4.10), with its caption as a paragraph below."""

from __future__ import annotations

import re
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
"""The columns with scores and intervals."""

MEANT = re.compile(r"[\\|*`<>\[\]~$&]|(?<![^\W_])_|_(?![^\W_])")
"""Markdown's special characters; an underscore inside a word is not special and is not escaped."""


@dataclass(frozen=True)
class Grid:
    """A table of plain text, unescaped: `rows` has a cell for each of `columns`; `numbers` are the numeric columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    numbers: tuple[str, ...] = SCORES


def render(records: Sequence[Score]) -> str:
    """Render the records as a table."""
    return format_markdown(make_grid(records))


def format_markdown(table: Grid) -> str:
    """Format a header, a rule and one line per row, numbers right-aligned; the caption follows."""
    number = [name in table.numbers for name in table.columns]
    head = [escape_markdown(name) for name in table.columns]
    rule = ["---:" if each else "---" for each in number]
    rows = [
        [cell if each else escape_markdown(cell) for cell, each in zip(row, number, strict=True)] for row in table.rows
    ]
    lines = [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]
    return "\n".join(lines) + f"\n\n{escape_markdown(table.caption)}\n"


def make_grid(records: Sequence[Score]) -> Grid:
    """Make a grid with one row per record, in order."""
    columns = list_columns(records)
    cells = [
        format_cells(record) | {"benchmark": entry}
        for record, entry in zip(records, name_entries(records), strict=True)
    ]
    return Grid(columns, tuple(tuple(row[column] for column in columns) for row in cells), format_caption(records))


def list_columns(records: Sequence[Score]) -> tuple[str, ...]:
    """Return the columns of these records' table: those of the worst group only if a record has one."""
    worst = ("worst group", SCORES[3]) if any(record.worst_group for record in records) else ()
    return ("benchmark", "kind", "metric", "model", "seeds", "selection", *SCORES[:3], *worst)


def format_cells(record: Score) -> dict[str, str]:
    """Return a record's cells by column, as plain text of one line; a missing score is empty."""
    worst = record.worst_group
    estimates = (record.id, record.ood, record.gap, worst.estimate if worst else None)
    percent = is_percent(record)
    cells = {
        "benchmark": record.benchmark,
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
    return {name: collapse_whitespace(cell) for name, cell in cells.items()}


def format_seeds(record: Score) -> str:
    """Format the number of seeds of a score, and the number that the protocol requires if that is larger."""
    if record.deterministic:
        return "1 (deterministic)"
    available, required = len(record.seeds), record.protocol_seeds
    return f"{available} of {required}" if available < required else str(available)


def format_caption(records: Sequence[Score]) -> str:
    """Return what the brackets, the units and the worst group of these records mean."""
    sentences = [f"Brackets: {describe_intervals(records)}."]
    if any(is_percent(record) for record in records):
        sentences.append("Metrics marked (%) are in percent, and their gaps in percentage points.")
    if any(record.worst_group for record in records):
        sentences.append(
            "The worst-group score is the worst of several noisy scores, so it is biased towards worse values."
        )
    return " ".join(filter(None, [*sentences, describe_incomparable(records)]))


def escape_markdown(text: str) -> str:
    """Escape a text for Markdown."""
    return MEANT.sub(r"\\\g<0>", text)
