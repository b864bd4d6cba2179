"""Benchmarks, tables and standings, as of the record that each response names."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fastapi.exceptions import HTTPException

from ...exports import make_export_files
from ...tables.table_view import TableView
from ..answers import ResponseBody, detect_media, make_body_response, to_json_body
from ..dependencies import Now, make_head_record
from ..models import Benchmarks, Standings, TableFound, Tables, describe_refusals
from ..served_board import RenderedBoard

router = APIRouter(tags=["tables"])

_ITEM = ("benchmark", "title", "kind", "budget", "steps", "selection", "metric", "better", "identity", "current")


@router.get("/benchmarks", response_model=Benchmarks, responses=describe_refusals(503))
def benchmarks(request: Request, shown: Now) -> Response:
    """List the benchmarks with entries on this board."""
    return make_body_response(request, shown.stored("benchmarks", lambda: to_json_body(_list_benchmarks(shown))))


@router.get("/tables", response_model=Tables, responses=describe_refusals(503))
def tables(request: Request, shown: Now) -> Response:
    """List the tables without their rows."""
    return make_body_response(request, shown.stored("tables", lambda: to_json_body(_list_tables(shown))))


@router.get("/tables/{identity}", response_model=TableFound, responses=describe_refusals(404, 503))
def table(
    request: Request,
    identity: Annotated[str, Path(description="The table's identity, or its first digits.", min_length=8)],
    shown: Now,
) -> Response:
    """Return a table with its rows."""
    matches = [view for view in shown.snapshot.views if view.table.identity.startswith(identity)]
    if len(matches) != 1:
        raise HTTPException(404, f"{len(matches) or 'no'} tables have the identity {identity[:64]}")
    answer = {"head": make_head_record(shown.snapshot.head), "table": matches[0].record()}
    return make_body_response(request, shown.stored(f"table {matches[0].table.identity}", lambda: to_json_body(answer)))


@router.get("/standings", response_model=Standings, responses=describe_refusals(503))
def standings(request: Request, shown: Now) -> Response:
    """Return all tables with their rows, aggregates over benchmarks, withdrawn and removed entries, and windows."""
    body = shown.stored("standings.json", lambda: to_json_body(shown.snapshot.record()))
    return make_body_response(request, body)


@router.get(
    "/standings.csv",
    response_class=Response,
    responses=describe_refusals(503) | {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
def standings_csv(request: Request, shown: Now) -> Response:
    """Return all tables as CSV (RFC 4180): a line per entry, numbers unrounded."""
    return _make_export_response(request, shown, "csv")


@router.get(
    "/standings.parquet",
    response_class=Response,
    responses=describe_refusals(503)
    | {200: {"content": {"application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}}}}},
)
def standings_parquet(request: Request, shown: Now) -> Response:
    """Return the same rows as an Apache Parquet file."""
    return _make_export_response(request, shown, "parquet")


def _make_export_response(request: Request, shown: RenderedBoard, form: str) -> Response:
    def make_body() -> ResponseBody:
        ((name, content),) = make_export_files(shown.snapshot, form).items()
        return ResponseBody(content, detect_media(name))

    named = {"Content-Disposition": f'attachment; filename="standings.{form}"'}
    return make_body_response(request, shown.stored(f"standings.{form}", make_body), headers=named)


def _list_benchmarks(shown: RenderedBoard) -> dict[str, Any]:
    grouped: dict[str, list[TableView]] = {}
    for view in shown.snapshot.views:
        grouped.setdefault(view.table.benchmark, []).append(view)
    return {
        "head": make_head_record(shown.snapshot.head),
        "benchmarks": [
            {
                "benchmark": name,
                **{field: getattr(views[0].table, field) for field in ("title", "kind", "metric")},
                "entries": sum(len(view.rows) for view in views),
                "tables": [view.table.identity for view in views],
            }
            for name, views in grouped.items()
        ],
    }


def _list_tables(shown: RenderedBoard) -> dict[str, Any]:
    return {
        "head": make_head_record(shown.snapshot.head),
        "tables": [_summarise_table(view) for view in shown.snapshot.views],
    }


def _summarise_table(view: TableView) -> dict[str, Any]:
    return {
        **{name: getattr(view.table, name) for name in _ITEM},
        "ranked": view.ranked,
        "baseline": view.baseline,
        "entries": len(view.rows),
        "can_be_first": [row.standing.entry for row in view.rows if row.rank and row.rank[0] == 1],
    }
