"""A board's tables as text, and as flat rows of numbers; and file names for models and teams."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from math import hypot
from typing import Any

from ...benchmarks.plot._panels import collapse_whitespace, format_estimate, is_percent
from ...benchmarks.scoring.trained_check import MARK
from ...benchmarks.statistics.interval import Estimate, Interval
from ...benchmarks.tables.markdown import Grid, format_seeds
from ..tables.snapshot import Snapshot
from ..tables.table import Row, Table

NUMBERS = ("OOD", "ID", "gap", "behind the first")
"""Columns with a number and its interval."""

_VERDICTS = {"better": "yes", "worse": "worse", "none": "no"}


def make_grid(table_view: Table) -> Grid:
    """Return one row of text per entry, best first, without columns that are empty for all entries."""
    cells = [_make_cells(table_view, row) for row in table_view.rows]
    if len({row["team"] for row in cells}) < 2:
        cells = [row | {"team": ""} for row in cells]
    names = [name for name in cells[0] if any(row[name] for row in cells)]
    rows = tuple(tuple(row[name] for name in names) for row in cells)
    return Grid(tuple(names), rows, " ".join(table_view.notes), NUMBERS)


def _make_cells(table_view: Table, row: Row) -> dict[str, str]:
    """Return a row's cells by column, as plain text. Names first: in a terminal the first two columns never wrap, so
    that they can be copied."""
    score = row.standing.score
    percent = is_percent(score)
    return {
        "model": collapse_whitespace(score.model),
        "rank": format_rank_set(row) if table_view.ranked else "",
        "ties": row.ties,
        "team": collapse_whitespace(row.standing.team),
        "OOD": format_estimate(score.ood, percent),
        "ID": format_estimate(score.id, percent),
        "gap": format_estimate(score.gap, percent),
        "behind the first": format_interval(row.behind, percent),
        "best": f"{row.best:.2f}" if row.best is not None and table_view.ranked > 1 else "",
        f"beats {collapse_whitespace(table_view.baseline)}": _format_verdict(row),
        "worst group": f"{format_interval(row.worst, percent)} {row.worst['group']}" if row.worst else "",
        "seeds": format_seeds(score),
        "attempts": _format_attempts(row, percent),
        "entered": row.standing.time[:10],
        "key": row.standing.fingerprint,
        "remark": MARK if row.not_learnt else "",
    }


def format_rank_set(row: Row) -> str:
    """Format a rank set, such as `1-4`, or `3` for a single rank."""
    return "n/a" if row.rank is None else "-".join(map(str, dict.fromkeys(row.rank)))


def format_interval(interval: Mapping[str, Any] | None, percent: bool) -> str:
    """Format a number and its interval; empty if there is none."""
    return format_estimate(Interval(interval["value"], interval["low"], interval["high"]), percent) if interval else ""


def compute_standard_error(estimate: Estimate) -> float:
    """Compute the standard error of an estimate over rows and, if there are several, seeds."""
    return hypot(estimate.row_se, estimate.seed_se or 0.0)


def _format_verdict(row: Row) -> str:
    return "" if row.against is None else f"{_VERDICTS[row.against['verdict']]} (p {row.against['p_holm']:.3g})"


def _format_attempts(row: Row, percent: bool) -> str:
    count = "" if row.attempts is None else str(row.attempts)
    if row.optimism is None:
        return count
    return f"{count} (up to +{100 * row.optimism:.1f})" if percent else f"{count} (up to +{row.optimism:.3f})"


def list_rows(board: Snapshot) -> list[dict[str, Any]]:
    """Return a flat row for each entry of each table, with unrounded numbers. Missing values are None."""
    return [_make_row(table_view, row) for table_view in board.views for row in table_view.rows]


def _make_row(table_view: Table, row: Row) -> dict[str, Any]:
    standing, score = row.standing, row.standing.score
    low, high = row.rank or (None, None)
    against, worst = row.against or {}, row.worst or {}
    names = ("benchmark", "kind", "metric", "better", "budget", "steps", "selection")
    return {
        **{name: getattr(score, name) for name in names},
        "entry": standing.entry,
        "model": score.model,
        "team": standing.team,
        "team_key": standing.team_key,
        "rank_low": low,
        "rank_high": high,
        "ranked": table_view.ranked or None,
        "unranked": row.unranked,
        "not_learnt": row.not_learnt,
        "ties": row.ties,
        "probability_best": row.best,
        **_flatten_numbers("id", score.id.to_dict()),
        **_flatten_numbers("ood", score.ood.to_dict()),
        **_flatten_numbers("gap", score.gap.to_dict()),
        **_flatten_numbers("behind_first", row.behind or {}),
        "baseline": table_view.baseline,
        **_flatten_numbers("against_baseline", against),
        "against_baseline_p_holm": against.get("p_holm"),
        "worst_group": worst.get("group"),
        **_flatten_numbers("worst_group_score", worst),
        "worst_group_bias": worst.get("bias"),
        "seeds": len(score.seeds),
        "protocol_seeds": score.protocol_seeds,
        "attempts": row.attempts,
        "optimism": row.optimism,
        **{name: getattr(score, name) for name in ("interval", "scorer", "entry_identity")},
        "submitted": standing.time,
    }


def _flatten_numbers(name: str, values: Mapping[str, Any]) -> dict[str, float | None]:
    ends = {"": "value", "_low": "low", "_high": "high", "_row_se": "row_se", "_seed_se": "seed_se"}
    return {f"{name}{end}": values.get(key) for end, key in ends.items()}


def make_slug(text: str) -> str:
    """Reduce a text to lower-case letters, digits, dots, dashes and underscores, safe as a part of a path; `unnamed` if
    nothing remains."""
    plain = re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-._")
    return plain[:80].rstrip("-._") or "unnamed"


def make_slugs(texts: Iterable[str]) -> dict[str, str]:
    """Return a slug for each text. Texts that would share a slug get the start of a digest appended, except a text that
    equals its slug."""
    texts_by_slug: dict[str, list[str]] = {}
    for text in sorted(set(texts)):
        texts_by_slug.setdefault(make_slug(text), []).append(text)
    return {
        text: name if len(sharing) == 1 or text == name else f"{name}-{sha256(text.encode()).hexdigest()[:8]}"
        for name, sharing in texts_by_slug.items()
        for text in sharing
    }
