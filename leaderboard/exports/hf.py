"""Hugging Face Community Evals: `eval.yaml` for the data set that hosts the benchmark, and for each model the files for
the `.eval_results/` folder of its repository (Hub documentation, Evaluation Results).

    eval.yaml
    models/<model>/.eval_results/<benchmark>.yaml

A task is a view of a table: `<benchmark>-ood` and `<benchmark>-id`; for the quick budget `<benchmark>-quick-ood`. The
Hub shows one value per result, so the interval is in the notes. Only tables of the published protocol are written,
because the format cannot represent other ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...benchmarks.plot._panels import format_estimate, is_percent
from ...core.errors import FarshiftError
from ...core.text import drop_version
from ..tables.snapshot import Snapshot, format_model_name, is_published_protocol
from ..tables.table import Row, Table
from ._table import format_rank_set, make_slug, make_slugs

OPTIONS = {
    "dataset": "the Hub data set that hosts the benchmark, OWNER/NAME",
    "source": "the public address of the board",
}
NEEDED = ("dataset",)
FRAMEWORK = "farshift"
VIEWS = {"ood": "on shifted data", "id": "on data like training"}


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """Return the data set's file, and one file per model and table."""
    if options["dataset"].count("/") != 1:
        raise FarshiftError(f"--dataset {options['dataset']!r}: write the data set as OWNER/NAME")
    views = [table_view for table_view in board.views if is_published_protocol(table_view)]
    documents = {"eval.yaml": dump_yaml(_describe_benchmark(board, views))}
    models = make_slugs(format_model_name(row.standing) for view in views for row in view.rows)
    for table_view in views:
        # The latest of a model's entries, because a repository has one value per task.
        for row in sorted(table_view.rows, key=lambda row: (row.standing.time, row.standing.entry)):
            path = f"models/{models[format_model_name(row.standing)]}/.eval_results/{_make_table_name(table_view)}.yaml"
            documents[path] = dump_yaml([_make_result(table_view, row, view, options) for view in VIEWS])
    return dict(sorted(documents.items()))


def dump_yaml(value: Any) -> bytes:
    """Serialise plain data as YAML, with keys in their order. Non-ASCII characters are escaped, because PyYAML does not
    preserve all of them."""
    import yaml

    text: str = yaml.safe_dump(value, sort_keys=False, width=120)
    return text.encode()


def _describe_benchmark(board: Snapshot, views: list[Table]) -> dict[str, Any]:
    tasks = [(_make_table_name(item), view, make_slug(item.benchmark)) for item in views for view in VIEWS]
    return {
        "name": board.name,
        "description": "How well a model generalises when the data shift: scores on in-distribution (id) and on "
        "shifted data (ood), recomputed from stored predictions.",
        "evaluation_framework": FRAMEWORK,
        "tasks": [{"id": f"{name}-{view}", "config": config, "split": "test"} for name, view, config in tasks],
    }


def _make_table_name(table_view: Table) -> str:
    """Return a name for a table; quick results have a separate one."""
    budget = table_view.budget
    return make_slug(table_view.benchmark) + ("" if budget == "full" else f"-{budget}")


def _make_result(table_view: Table, row: Row, view: str, options: Mapping[str, str]) -> dict[str, Any]:
    standing, score = row.standing, row.standing.score
    estimate = score.ood if view == "ood" else score.id
    percent = is_percent(score)
    rank = f"; rank set {format_rank_set(row)} of {table_view.ranked}" if view == "ood" and row.rank else ""
    rank += f"; not ranked: {row.unranked}" if view == "ood" and row.unranked else ""
    result: dict[str, Any] = {
        "dataset": {"id": options["dataset"], "task_id": f"{_make_table_name(table_view)}-{view}"},
        "value": round((100 if percent else 1) * estimate.value, 4),
        "date": standing.time,
    }
    if options.get("source"):
        result["source"] = {"url": options["source"], "name": "Board with stored predictions"}
    result["evaluation_framework"] = FRAMEWORK
    result["notes"] = (
        f"{drop_version(score.metric)}{' in percent' if percent else ''} {VIEWS[view]}, "
        f"{format_estimate(estimate, percent)}: 95 % t interval over test rows and "
        f"{len(score.seeds)} training seeds{rank}; entry {standing.entry}, identity {score.entry_identity[:16]}"
    )
    return result
