"""A board's table as text: its columns, a row of cells per entry, and a caption."""

from __future__ import annotations

from collections.abc import Mapping
from math import hypot
from typing import Any

from ...benchmarks.plot._panels import collapse_whitespace, format_estimate, is_percent
from ...benchmarks.statistics.interval import Estimate, Interval
from ...benchmarks.tables._grid import Grid, format_seeds
from ..tables.table_view import Row, TableView

NUMBERS = ("OOD", "ID", "gap", "behind the first")
"""Columns with a number and its interval."""


def make_grid(table_view: TableView) -> Grid:
    """Return one row per entry, best first, without columns that are empty for all entries."""
    names = _list_columns(table_view)
    rows = (_make_cells(table_view, row) for row in table_view.rows)
    return Grid(
        tuple(names), tuple(tuple(row[name] for name in names) for row in rows), make_caption(table_view), NUMBERS
    )


def _list_columns(table_view: TableView) -> list[str]:
    ranked = ["rank", "ties"] if table_view.ranked else []
    behind = ["behind the first", "best"] if table_view.ranked > 1 else []
    against = [f"beats {collapse_whitespace(table_view.baseline)}"] if table_view.baseline else []
    worst = ["worst group"] if any(row.worst for row in table_view.rows) else []
    team = ["team"] if len({row.standing.team for row in table_view.rows}) > 1 else []
    # Names first: in a terminal the first two columns never wrap, so that they can be copied.
    named = ["model", *ranked, *team]
    return [*named, "OOD", "ID", "gap", *behind, *against, *worst, "seeds", "attempts"]


def _make_cells(table_view: TableView, row: Row) -> dict[str, str]:
    """Return a row's cells by column, as plain text."""
    score = row.standing.score
    percent = is_percent(score)
    return {
        "rank": format_rank_set(row),
        "ties": row.ties,
        "model": collapse_whitespace(score.model),
        "team": collapse_whitespace(row.standing.team),
        "ID": format_estimate(score.id, percent),
        "OOD": format_estimate(score.ood, percent),
        "gap": format_estimate(score.gap, percent),
        "behind the first": format_interval(row.behind, percent),
        "best": "" if row.best is None else f"{row.best:.2f}",
        f"beats {collapse_whitespace(table_view.baseline)}": _format_verdict(row),
        "worst group": f"{format_interval(row.worst, percent)} {row.worst['group']}" if row.worst else "",
        "seeds": format_seeds(score),
        "attempts": _format_attempts(row, percent),
    }


def format_rank_set(row: Row) -> str:
    """Format a rank set, such as `1-4`, or `3` for a single rank."""
    if row.rank is None:
        return "n/a"
    low, high = row.rank
    return str(low) if low == high else f"{low}-{high}"


def format_interval(interval: Mapping[str, Any] | None, percent: bool) -> str:
    """Format a number and its interval; empty if there is none."""
    return format_estimate(Interval(interval["value"], interval["low"], interval["high"]), percent) if interval else ""


def compute_standard_error(estimate: Estimate) -> float:
    """Compute the standard error of an estimate over rows and, if there are several, seeds."""
    return hypot(estimate.row_se, estimate.seed_se or 0.0)


def _format_verdict(row: Row) -> str:
    if row.against is None:
        return ""
    words = {"better": "yes", "worse": "worse", "none": "no"}[row.against["verdict"]]
    return f"{words} (p {row.against['p_holm']:.3g})"


def _format_attempts(row: Row, percent: bool) -> str:
    if row.attempts is None:
        return ""
    if row.optimism is None:
        return str(row.attempts)
    scale, digits = (100, 1) if percent else (1, 3)
    return f"{row.attempts} (up to +{scale * row.optimism:.{digits}f})"


def make_caption(table_view: TableView) -> str:
    """Return sentences that explain the columns."""
    return " ".join(table_view.notes)
