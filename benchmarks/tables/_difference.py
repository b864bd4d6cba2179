"""A comparison of two runs (`compare_in_full`) as a LaTeX table: ID, OOD and gap, and optionally each severity and each
group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..statistics.interval import Interval, read_interval
from ._booktabs import (
    Column,
    Notes,
    escape_latex,
    format_interval,
    format_table,
    format_tabular,
    format_value,
    make_slug,
)


def render_difference(comparison: Mapping[str, Any], full: bool = False, caption: str = "", label: str = "") -> str:
    """Render a `table` environment with a row for each difference, bold if its interval excludes zero. full: include
    the differences at each severity and in each group."""
    percent = list(comparison["bounds"] or ()) == [0, 1]
    unit = "percentage points" if percent else comparison["metric"]
    notes = Notes(
        [
            f"{comparison['left']} minus {comparison['right']} by {comparison['metric']}, in {unit}.",
            "Bold: the interval excludes zero.",
            f"Brackets: {comparison['interval']}.",
            "Intervals by severity and group are unadjusted." if full and _split_parts(comparison)[1:] else "",
        ]
    )
    notes.sentences = [*filter(None, notes.sentences)]
    columns = [Column("", number=False), Column("difference"), Column("95\\,\\% interval")]
    tabulars = []
    for head, rows in _split_parts(comparison)[: None if full else 1]:
        columns[0] = Column(head, number=False)
        tabulars.append(
            format_tabular(columns, [[escape_latex(name), *_format_cells(item, percent, notes)] for name, item in rows])
        )
    title = f"{comparison['left']} minus {comparison['right']} on {comparison['benchmark']}"
    return format_table(tabulars, caption or f"{title}.", label or make_slug([title]), notes)


def _split_parts(comparison: Mapping[str, Any]) -> list[tuple[str, Sequence[tuple[str, Mapping[str, Any]]]]]:
    names = {"id": "ID", "ood": "OOD"}
    overall = [(names.get(name, name), item) for name, item in comparison["difference"].items()]
    along = [(_format_severity(point), point) for point in comparison["severity"]]
    groups = [*comparison["groups"].items()]
    return [(head, rows) for head, rows in (("score", overall), ("severity", along), ("group", groups)) if rows]


def _format_severity(point: Mapping[str, Any]) -> str:
    low, high = point["from"], point["to"]
    return f"{point['view'].upper()}, {low:g}" + (f" to {high:g}" if high > low else "")


def _format_cells(item: Mapping[str, Any], percent: bool, notes: Notes) -> list[str]:
    known = read_interval(item)
    if not isinstance(known, Interval):
        return [f"n/a{notes.mark(f'{known.reason}.')}", ""]
    if item["distinguishable"] is None:
        mark = notes.mark("A run has a single seed: the interval does not cover training noise, so nothing is bold.")
        return [format_value(known, percent) + mark, format_interval(known, percent)]
    return [format_value(known, percent, item["distinguishable"]), format_interval(known, percent)]
