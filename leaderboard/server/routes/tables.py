"""Benchmarks, tables, standings and comparisons, as of the record that each response names; entries, with their scores
and predictions.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.exceptions import HTTPException

from ....core.errors import FarshiftError, UnknownName
from ...entries import Entry, get_submission_path
from ...exports import make_export_files
from ...publish.compare import make_compare_page
from ...publish.site import Site
from ...tables.table_view import TableView
from ..accounts import HTTPProblem
from ..answers import ResponseBody, detect_media, make_body_response, make_file_response, to_json_body
from ..models import Benchmarks, Entries, EntryFound, Standings, TableFound, Tables, describe_refusals
from ..served_board import (
    History,
    Rendered,
    RenderedBoard,
    Served,
    find_entry,
    get_team_names,
    make_entry_item,
    make_head_record,
)

router = APIRouter(tags=["tables"], responses=describe_refusals(404, 503))

_ITEM = ("benchmark", "title", "kind", "budget", "steps", "selection", "metric", "better", "identity", "current")


@router.get("/benchmarks", response_model=Benchmarks)
def benchmarks(request: Request, shown: Rendered) -> Response:
    """List the benchmarks with entries on this board."""
    grouped: dict[str, list[TableView]] = {}
    for view in shown.snapshot.views:
        grouped.setdefault(view.table.benchmark, []).append(view)
    items = [
        {
            "benchmark": name,
            **{field: getattr(views[0].table, field) for field in ("title", "kind", "metric")},
            "entries": sum(len(view.rows) for view in views),
            "tables": [view.table.identity for view in views],
        }
        for name, views in grouped.items()
    ]
    answer = {"head": make_head_record(shown.snapshot.head), "benchmarks": items}
    return make_body_response(request, to_json_body(answer))


@router.get("/tables", response_model=Tables)
def tables(request: Request, shown: Rendered) -> Response:
    """List the tables without their rows."""
    items = [
        {
            **{name: getattr(view.table, name) for name in _ITEM},
            "ranked": view.ranked,
            "baseline": view.baseline,
            "entries": len(view.rows),
            "can_be_first": [row.standing.entry for row in view.rows if row.rank and row.rank[0] == 1],
        }
        for view in shown.snapshot.views
    ]
    answer = {"head": make_head_record(shown.snapshot.head), "tables": items}
    return make_body_response(request, to_json_body(answer))


@router.get("/tables/{identity}", response_model=TableFound)
def table(
    request: Request,
    identity: Annotated[str, Path(description="The table's identity, or its first digits.", min_length=8)],
    shown: Rendered,
) -> Response:
    """Return a table with its rows."""
    matches = [view for view in shown.snapshot.views if view.table.identity.startswith(identity)]
    if len(matches) != 1:
        raise HTTPException(404, f"{len(matches) or 'no'} tables have the identity {identity[:64]}")
    answer = {"head": make_head_record(shown.snapshot.head), "table": matches[0].record()}
    return make_body_response(request, to_json_body(answer))


@router.get("/standings", response_model=Standings)
def standings(request: Request, shown: Rendered) -> Response:
    """Return all tables with their rows, aggregates over benchmarks, withdrawn and removed entries, and windows."""
    body = shown.stored("standings.json", lambda: to_json_body(shown.snapshot.record()))
    return make_body_response(request, body)


@router.get(
    "/standings.csv",
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
def standings_csv(request: Request, shown: Rendered) -> Response:
    """Return all tables as CSV (RFC 4180): a line per entry, numbers unrounded."""
    return _make_export_response(request, shown, "csv")


@router.get(
    "/standings.parquet",
    response_class=Response,
    responses={
        200: {"content": {"application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}}}}
    },
)
def standings_parquet(request: Request, shown: Rendered) -> Response:
    """Return the same rows as an Apache Parquet file."""
    return _make_export_response(request, shown, "parquet")


def _make_export_response(request: Request, shown: RenderedBoard, form: str) -> Response:
    def make_body() -> ResponseBody:
        ((name, content),) = make_export_files(shown.snapshot, form).items()
        return ResponseBody(content, detect_media(name))

    named = {"Content-Disposition": f'attachment; filename="standings.{form}"'}
    return make_body_response(request, shown.stored(f"standings.{form}", make_body), headers=named)


MOST_CHARACTERS = 100
"""Characters of an entry's name that are read."""


@router.get(
    "/compare",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}, 400: {"description": "These entries cannot be compared."}},
)
def compare(
    request: Request,
    shown: Rendered,
    entry: Annotated[list[str], Query(description="An entry; give two to five of one table.", max_length=20)],
) -> Response:
    """Return the page that compares two to five entries of one table."""
    try:
        page = make_compare_page(
            Site(shown.snapshot, shown.view), [name[:MOST_CHARACTERS] for name in entry], "api/v1/compare"
        )
    except UnknownName:
        raise
    except FarshiftError as error:
        raise HTTPProblem.make(400, str(error)) from error
    return make_body_response(request, ResponseBody(page.render(), "text/html; charset=utf-8"))


MOST = 500


@router.get("/entries", response_model=Entries)
def entries(
    request: Request,
    board: Served,
    benchmark: Annotated[str, Query(description="Only of this benchmark.", examples=["scan/length"])] = "",
    kind: Annotated[str, Query(description="Only of this kind of shift.", examples=["length"])] = "",
    team: Annotated[str, Query(description="Only of this team: its display name or its public key.")] = "",
    model: Annotated[str, Query(description="Only of this model.")] = "",
    cursor: Annotated[str, Query(description="`next` of the previous page.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
) -> Response:
    """List entries in the ledger's order, including withdrawn and removed ones."""
    history = board.history()
    every = list(history.entries.values())
    first = 0
    if cursor:
        find_entry(history, cursor)
        first = 1 + next(index for index, item in enumerate(every) if item.entry == cursor)
    matches: list[Entry] = []
    more = False
    for item in every[first:]:
        if not item.scores or not _matches_filters(history, item, benchmark, team, model):
            continue
        if kind and board.standing(history, item).score.kind != kind:
            continue
        if len(matches) == limit:
            more = True
            break
        matches.append(item)
    following = matches[-1].entry if more else None
    answer = {
        "head": make_head_record(history.head),
        "entries": [make_entry_item(board, history, item) for item in matches],
        "next": following,
    }
    link = {"Link": f'<{request.url.include_query_params(cursor=following)}>; rel="next"'} if following else {}
    return make_body_response(request, to_json_body(answer), headers=link)


@router.get("/entries/{entry}", response_model=EntryFound)
def entry(request: Request, entry: str, board: Served) -> Response:
    """Return an entry with its row of the table and its scores."""
    history = board.history()
    match = _find_scored_entry(history, entry)
    shown = board.ready
    rows = [row for view in shown.snapshot.views for row in view.rows if row.standing.entry == entry] if shown else []
    answer = {
        "head": make_head_record(history.head),
        "entry": make_entry_item(board, history, match),
        "row": rows[0].record() if rows else None,
        "table_head": make_head_record(shown.snapshot.head) if shown and rows else None,
        "scores": [
            {"scorer": item.scorer, "entry_identity": item.entry_identity, "path": item.path, "sha256": item.digest}
            for item in match.scores
        ],
    }
    return make_body_response(request, to_json_body(answer))


@router.get(
    "/entries/{entry}/score",
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
def score(
    request: Request,
    entry: str,
    board: Served,
    scorer: Annotated[int | None, Query(description="The scorer's version; the newest by default.")] = None,
) -> Response:
    """Return the file of an entry's score, whose sha256 is in the ledger."""
    match = _find_scored_entry(board.history(), entry)
    chosen = [item for item in match.scores if scorer in (None, item.scorer)]
    if not chosen:
        raise HTTPException(404, f"entry {entry} has no score by scorer {scorer}")
    return _make_file_response(request, board, chosen[-1].path, lasting=scorer is not None)


@router.get(
    "/entries/{entry}/submission",
    response_class=Response,
    responses={
        status: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}
        for status in (200, 206)
    },
)
def submission(request: Request, entry: str, board: Served) -> Response:
    """Return the zip of an entry's submission: predictions and cards. Supports range requests."""
    match = find_entry(board.history(), entry)
    return _make_file_response(request, board, get_submission_path(match.submission), f"{match.submission[:16]}.zip")


def _make_file_response(request: Request, board: Served, path: str, name: str = "", lasting: bool = True) -> Response:
    digest = board.history().file(path)
    file = board.file(path) if digest is not None else None
    if digest is None or file is None:
        raise HTTPException(404, f"{path} is not on this server")
    answer = make_file_response(request, file, digest, name)
    if not lasting:
        answer.headers["Cache-Control"] = "public, no-cache"
    return answer


def _find_scored_entry(history: History, name: str) -> Entry:
    match = find_entry(history, name)
    if not match.scores:
        raise HTTPException(404, f"entry {name} has no score yet")
    return match


def _matches_filters(history: History, item: Entry, benchmark: str, team: str, model: str) -> bool:
    shown: Any = get_team_names(history)[item.team, item.team_key]
    return (
        benchmark in ("", item.benchmark)
        and model in ("", item.model)
        and team in ("", item.team, shown, item.team_key)
    )
