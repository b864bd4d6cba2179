"""A comparison of two runs (`compare_in_full`) as a LaTeX table: ID, OOD and gap, and where wanted each severity and
each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..statistics.interval import Interval, read_interval
from ._booktabs import Column, Notes, escaped, interval, slug, table, tabular, value


def rendered(found: Mapping[str, Any], full: bool = False, caption: str = "", label: str = "") -> str:
    """A `table` environment with a row for each difference; bold is one whose interval excludes zero. full: with the
    differences at each severity and in each group."""
    percent = list(found["bounds"] or ()) == [0, 1]
    unit = "percentage points" if percent else found["metric"]
    notes = Notes(
        [
            f"{found['left']} minus {found['right']} by {found['metric']}, in {unit}.",
            "Bold: the interval excludes zero.",
            f"Brackets: {found['interval']}.",
            "Each severity and each group has an interval of its own." if full and _parts(found)[1:] else "",
        ]
    )
    notes.sentences = [*filter(None, notes.sentences)]
    columns = [Column("", number=False), Column("difference"), Column("95\\,\\% interval")]
    tabulars = []
    for head, rows in _parts(found)[: None if full else 1]:
        columns[0] = Column(head, number=False)
        tabulars.append(tabular(columns, [[escaped(name), *_cells(item, percent, notes)] for name, item in rows]))
    title = f"{found['left']} minus {found['right']} on {found['benchmark']}"
    return table(tabulars, caption or f"{title}.", label or slug([title]), notes)


def _parts(found: Mapping[str, Any]) -> list[tuple[str, Sequence[tuple[str, Mapping[str, Any]]]]]:
    names = {"id": "ID", "ood": "OOD"}
    overall = [(names.get(name, name), item) for name, item in found["difference"].items()]
    along = [(_severity(point), point) for point in found["severity"]]
    groups = [*found["groups"].items()]
    return [(head, rows) for head, rows in (("score", overall), ("severity", along), ("group", groups)) if rows]


def _severity(point: Mapping[str, Any]) -> str:
    low, high = point["from"], point["to"]
    return f"{point['view'].upper()}, {low:g}" + (f" to {high:g}" if high > low else "")


def _cells(item: Mapping[str, Any], percent: bool, notes: Notes) -> list[str]:
    known = read_interval(item)
    if not isinstance(known, Interval):
        return [f"n/a{notes.mark(f'{known.reason}.')}", ""]
    if item["distinguishable"] is None:
        mark = notes.mark("A run with a single seed: training noise is not in the interval, so nothing is bold.")
        return [value(known, percent) + mark, interval(known, percent)]
    return [value(known, percent, item["distinguishable"]), interval(known, percent)]
