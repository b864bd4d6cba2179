"""A board's entries as flat rows, one for each entry of each table, with unrounded numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..tables.snapshot import Snapshot
from ..tables.table_view import Row, TableView


def list_rows(board: Snapshot) -> list[dict[str, Any]]:
    """Return the rows in the order of the tables. Missing values are None."""
    return [_make_row(table_view, row) for table_view in board.views for row in table_view.rows]


def _make_row(table_view: TableView, row: Row) -> dict[str, Any]:
    standing, score = row.standing, row.standing.score
    low, high = row.rank or (None, None)
    return {
        **{name: getattr(score, name) for name in ("benchmark", "kind", "metric", "better")},
        **{name: getattr(score, name) for name in ("budget", "steps", "selection")},
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
        **_flatten_numbers("behind_first", row.behind),
        "baseline": table_view.baseline,
        **_flatten_numbers("against_baseline", row.against),
        "against_baseline_p_holm": row.against["p_holm"] if row.against else None,
        "worst_group": row.worst["group"] if row.worst else None,
        **_flatten_numbers("worst_group_score", row.worst),
        "worst_group_bias": row.worst["bias"] if row.worst else None,
        "seeds": len(score.seeds),
        "protocol_seeds": score.protocol_seeds,
        "attempts": row.attempts,
        "optimism": row.optimism,
        **{name: getattr(score, name) for name in ("interval", "scorer", "entry_identity")},
        "submitted": standing.time,
    }


def _flatten_numbers(name: str, values: Mapping[str, Any] | None) -> dict[str, float | None]:
    known = values or {}
    ends = (("", "value"), ("_low", "low"), ("_high", "high"), ("_row_se", "row_se"), ("_seed_se", "seed_se"))
    return {f"{name}{end}": known.get(key) for end, key in ends}
