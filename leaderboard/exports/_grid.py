"""The words of a board's table for people: its columns, a row of cells per entry, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from math import hypot
from typing import Any

from ...benchmarks.plot._panels import in_percent, in_words, one_line
from ...benchmarks.statistics.interval import Estimate, Interval
from ...benchmarks.tables._grid import Grid, seeds
from ..tables.table_view import Row, TableView

NUMBERS = ("OOD", "ID", "gap", "behind the first")
"""Columns that hold a number and its interval."""


def grid(table_view: TableView) -> Grid:
    """One row per entry, best first; of the columns those that hold something for at least one of the entries."""
    names = _columns(table_view)
    rows = (_cells(table_view, row) for row in table_view.rows)
    return Grid(tuple(names), tuple(tuple(row[name] for name in names) for row in rows), caption(table_view), NUMBERS)


def _columns(table_view: TableView) -> list[str]:
    ranked = ["rank", "ties"] if table_view.ranked else []
    behind = ["behind the first", "best"] if table_view.ranked > 1 else []
    against = [f"beats {one_line(table_view.baseline)}"] if table_view.baseline else []
    worst = ["worst group"] if any(row.worst for row in table_view.rows) else []
    team = ["team"] if len({row.standing.team for row in table_view.rows}) > 1 else []
    # Names first: a terminal never breaks the first two columns, so that they can be copied.
    named = ["model", *ranked, *team]
    return [*named, "OOD", "ID", "gap", *behind, *against, *worst, "seeds", "attempts"]


def _cells(table_view: TableView, row: Row) -> dict[str, str]:
    """A row's cells by column, plain text."""
    score = row.standing.score
    percent = in_percent(score)
    return {
        "rank": rank_set(row),
        "ties": row.ties,
        "model": one_line(score.model),
        "team": one_line(row.standing.team),
        "ID": in_words(score.id, percent),
        "OOD": in_words(score.ood, percent),
        "gap": in_words(score.gap, percent),
        "behind the first": words(row.behind, percent),
        "best": "" if row.best is None else f"{row.best:.2f}",
        f"beats {one_line(table_view.baseline)}": _beats(row),
        "worst group": f"{words(row.worst, percent)} {row.worst['group']}" if row.worst else "",
        "seeds": seeds(score),
        "attempts": _attempts(row, percent),
    }


def rank_set(row: Row) -> str:
    """A rank set, such as `1-4`, or `3` where it holds one rank."""
    if row.rank is None:
        return "n/a"
    low, high = row.rank
    return str(low) if low == high else f"{low}-{high}"


def words(found: Mapping[str, Any] | None, percent: bool) -> str:
    """A number and its interval; empty where there is none."""
    return in_words(Interval(found["value"], found["low"], found["high"]), percent) if found else ""


def standard_error(found: Estimate) -> float:
    """The standard error of an estimate over rows and, where it has several, seeds."""
    return hypot(found.row_se, found.seed_se or 0.0)


def _beats(row: Row) -> str:
    if row.against is None:
        return ""
    words = {"better": "yes", "worse": "worse", "none": "no"}[row.against["verdict"]]
    return f"{words} (p {row.against['p_holm']:.3g})"


def _attempts(row: Row, percent: bool) -> str:
    if row.attempts is None:
        return ""
    if row.optimism is None:
        return str(row.attempts)
    scale, digits = (100, 1) if percent else (1, 3)
    return f"{row.attempts} (up to +{scale * row.optimism:.{digits}f})"


def caption(table_view: TableView) -> str:
    """What the columns mean, in sentences."""
    return " ".join(table_view.notes)
