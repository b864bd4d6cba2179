"""Benchmarks, tables and standings: as they were at the record that each answer names."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fastapi.exceptions import HTTPException

from ...exports import exported
from ...tables.table_view import TableView
from ..answers import Stored, as_json, detect_media, stored_answer
from ..models import Benchmarks, Standings, TableFound, Tables, refused
from ..published import Shown
from ..reading import Now, head

router = APIRouter(tags=["tables"])

_ITEM = ("benchmark", "title", "kind", "budget", "steps", "selection", "metric", "better", "identity", "current")


@router.get("/benchmarks", response_model=Benchmarks, responses=refused(503))
def benchmarks(request: Request, shown: Now) -> Response:
    """The benchmarks that have entries here."""
    return stored_answer(request, shown.stored("benchmarks", lambda: as_json(_benchmarks(shown))))


@router.get("/tables", response_model=Tables, responses=refused(503))
def tables(request: Request, shown: Now) -> Response:
    """The tables, without their rows."""
    return stored_answer(request, shown.stored("tables", lambda: as_json(_tables(shown))))


@router.get("/tables/{identity}", response_model=TableFound, responses=refused(404, 503))
def table(
    request: Request,
    identity: Annotated[str, Path(description="The table's identity, or the first digits of it.", min_length=8)],
    shown: Now,
) -> Response:
    """A table with its rows."""
    found = [view for view in shown.snapshot.views if view.table.identity.startswith(identity)]
    if len(found) != 1:
        raise HTTPException(404, f"{len(found) or 'no'} tables have the identity {identity[:64]}")
    answer = {"head": head(shown.snapshot.head), "table": found[0].record()}
    return stored_answer(request, shown.stored(f"table {found[0].table.identity}", lambda: as_json(answer)))


@router.get("/standings", response_model=Standings, responses=refused(503))
def standings(request: Request, shown: Now) -> Response:
    """All tables with their rows, aggregates over benchmarks, and what is listed separately."""
    made = shown.stored("standings.json", lambda: as_json(shown.snapshot.record()))
    return stored_answer(request, made)


@router.get(
    "/standings.csv",
    response_class=Response,
    responses=refused(503) | {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
def standings_csv(request: Request, shown: Now) -> Response:
    """A line for each entry of every table, numbers unrounded (RFC 4180)."""
    return _exported(request, shown, "csv")


@router.get(
    "/standings.parquet",
    response_class=Response,
    responses=refused(503)
    | {200: {"content": {"application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}}}}},
)
def standings_parquet(request: Request, shown: Now) -> Response:
    """The same lines as an Apache Parquet file."""
    return _exported(request, shown, "parquet")


def _exported(request: Request, shown: Shown, form: str) -> Response:
    def made() -> Stored:
        ((name, content),) = exported(shown.snapshot, form).items()
        return Stored(content, detect_media(name))

    named = {"Content-Disposition": f'attachment; filename="standings.{form}"'}
    return stored_answer(request, shown.stored(f"standings.{form}", made), headers=named)


def _benchmarks(shown: Shown) -> dict[str, Any]:
    grouped: dict[str, list[TableView]] = {}
    for view in shown.snapshot.views:
        grouped.setdefault(view.table.benchmark, []).append(view)
    return {
        "head": head(shown.snapshot.head),
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


def _tables(shown: Shown) -> dict[str, Any]:
    return {"head": head(shown.snapshot.head), "tables": [_summary(view) for view in shown.snapshot.views]}


def _summary(view: TableView) -> dict[str, Any]:
    return {
        **{name: getattr(view.table, name) for name in _ITEM},
        "ranked": view.ranked,
        "baseline": view.baseline,
        "entries": len(view.rows),
        "can_be_first": [row.standing.entry for row in view.rows if row.rank and row.rank[0] == 1],
    }
