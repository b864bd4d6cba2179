"""EveryEvalEver: one JSON file per model and table, `data/<collection>/<developer>/<model>/<uuid>.json`, in its schema
0.3.0 (eval.schema.json of evaleval/every_eval_ever), with the standard error and the interval of each score.

File names are uuids derived from the entry's name, so the same board gives the same files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from ...benchmarks.statistics.interval import Estimate
from ...core.settings import get_version
from ..tables.snapshot import Snapshot
from ..tables.table import Row, Table
from ._table import compute_standard_error, format_rank_set, make_slug, make_slugs

SCHEMA = "0.3.0"
COLLECTION = "farshift"
OPTIONS = {"source": "the public address of the board"}
VIEWS = {
    "id": "on held-out rows of the training distribution",
    "ood": "on shifted rows",
    "gap": "ID minus OOD",
}
METHOD = "analytic: cluster-robust over test rows, and over training seeds (t interval)"


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """Return a file per entry, sorted by path."""
    teams = make_slugs(_get_team(row) for table_view in board.views for row in table_view.rows)
    models = make_slugs(str(row.standing.score.model) for table_view in board.views for row in table_view.rows)
    documents = {}
    for table_view in board.views:
        for row in table_view.rows:
            developer, model = teams[_get_team(row)], models[str(row.standing.score.model)]
            name = UUID(bytes=sha256(f"farshift/eee/{row.standing.entry}".encode()).digest()[:16], version=4)
            path = f"data/{COLLECTION}/{developer}/{model}/{name}.json"
            content = _make_log(board, table_view, row, f"{developer}/{model}", options.get("source", ""))
            documents[path] = (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
    return dict(sorted(documents.items()))


def _get_team(row: Row) -> str:
    return row.standing.team or "unknown"


def _to_epoch_seconds(time: str) -> str:
    return str(int(datetime.fromisoformat(time).timestamp()))


def _make_log(board: Snapshot, table_view: Table, row: Row, model: str, source: str) -> dict[str, Any]:
    standing, score = row.standing, row.standing.score
    where = {
        "source_name": board.name,
        "source_type": "evaluation_run",
        "source_organization_name": _get_team(row),
        # Teams submit predictions of their own runs; a board cannot know whether the model is theirs.
        "evaluator_relationship": "other",
        "additional_details": {"entry": standing.entry, "submission_sha256": standing.submission},
    }
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{make_slug(table_view.benchmark)}/{model}/{_to_epoch_seconds(standing.time)}",
        "evaluation_timestamp": standing.time,
        "retrieved_timestamp": _to_epoch_seconds(standing.time),
        "source_metadata": where | ({"source_organization_url": source} if source else {}),
        "model_info": {
            "name": score.model,
            "id": model,
            "developer": _get_team(row),
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "eval_library": {
            "name": "farshift",
            "version": get_version(),
            "additional_details": {"scorer": str(score.scorer), "entry_identity": score.entry_identity},
        },
        "evaluation_results": [_make_result(table_view, row, view) for view in VIEWS],
    }


def _make_result(table_view: Table, row: Row, view: str) -> dict[str, Any]:
    score = row.standing.score
    estimate: Estimate = getattr(score, view)
    details = {"per_seed": json.dumps(list(estimate.per_seed)), "selection": score.selection}
    if view == "ood" and row.unranked:
        details |= {"not_ranked": row.unranked}
    if view == "ood" and row.rank:
        details |= {"rank_set": format_rank_set(row), "ranked_entries": str(table_view.ranked), "tie_groups": row.ties}
    return {
        "evaluation_result_id": f"{row.standing.entry}/{view}",
        "evaluation_name": f"{score.benchmark} {view}",
        "source_data": {
            "dataset_name": score.benchmark,
            "source_type": "other",
            "additional_details": {"kind_of_shift": score.kind, "entry_identity": score.entry_identity},
        },
        "metric_config": _describe_metric(table_view, row, view),
        "score_details": {
            "score": estimate.value,
            "details": details,
            "uncertainty": {
                "standard_error": {"value": round(compute_standard_error(estimate), 6), "method": METHOD},
                "confidence_interval": {
                    "lower": estimate.low,
                    "upper": estimate.high,
                    "confidence_level": 0.95,
                    "method": METHOD,
                },
                "num_samples": estimate.rows,
            },
        },
    }


def _describe_metric(table_view: Table, row: Row, view: str) -> dict[str, Any]:
    score = row.standing.score
    name, _, number = score.metric.partition("@")
    low, high = score.bounds or (None, None)
    if score.bounds is not None and view == "gap":
        low, high = score.bounds[0] - score.bounds[1], score.bounds[1] - score.bounds[0]
    lower = score.better == "lower"
    return {
        "evaluation_description": f"{table_view.title}: {name} {VIEWS[view]}",
        "metric_id": f"farshift.gap.{name}" if view == "gap" else name,
        "metric_name": f"{name} ({view})",
        "metric_kind": name,
        "metric_unit": "proportion" if score.bounds == (0.0, 1.0) else "points",
        "metric_parameters": {"version": int(number)},
        # If a higher score is better, a smaller gap is better, and vice versa.
        "lower_is_better": lower is (view != "gap"),
        "score_type": "continuous",
        "min_score": low,
        "max_score": high,
    }
