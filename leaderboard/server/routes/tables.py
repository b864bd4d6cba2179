"""Benchmarks, tables, standings and comparisons, as of the record that each response names; entries, with their scores
and predictions.
"""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.exceptions import HTTPException
from starlette.concurrency import run_in_threadpool

from ....core.documents import parse_json
from ....core.errors import FarshiftError, UnknownName
from ...entries import Entry, get_submission_path
from ...exports import make_export_files
from ...publish.compare import make_compare_page
from ...publish.site import Site
from ...tables.table import Table
from ..accounts import HTTPProblem
from ..answers import JSON, ResponseBody, detect_media, make_body_response, make_file_response, to_json, to_json_body
from ..models import Benchmarks, Entries, EntryFound, Standings, TableFound, Tables, describe_refusals
from ..served_board import (
    History,
    Rendered,
    RenderedBoard,
    Served,
    ServedBoard,
    make_head_record,
)

router = APIRouter(tags=["tables"], responses=describe_refusals(404, 503))

_ITEM = ("benchmark", "title", "kind", "budget", "steps", "selection", "metric", "better", "identity", "current")


@router.get("/benchmarks", response_model=Benchmarks)
def benchmarks(request: Request, shown: Rendered) -> Response:
    """List the benchmarks with entries on this board."""
    grouped: dict[str, list[Table]] = {}
    for view in shown.snapshot.views:
        grouped.setdefault(view.benchmark, []).append(view)
    items = [
        {
            "benchmark": name,
            **{field: getattr(views[0], field) for field in ("title", "kind", "metric")},
            "entries": sum(len(view.rows) for view in views),
            "tables": [view.identity for view in views],
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
            **{name: getattr(view, name) for name in _ITEM},
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
    matches = [view for view in shown.snapshot.views if view.identity.startswith(identity)]
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
async def entries(
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
    history = await board.read_history()
    if cursor:
        _find_scored_entry(history, cursor)
    following = history.scored[history.positions[cursor] + 1 if cursor else 0 :]

    def choose() -> list[Entry]:
        chosen = (item for item in following if _matches_filters(board, history, item, benchmark, kind, team, model))
        return list(islice(chosen, limit + 1))

    filtered = benchmark or kind or team or model
    chosen = await run_in_threadpool(choose) if filtered else following[: limit + 1]
    page, after = chosen[:limit], chosen[limit - 1].entry if len(chosen) > limit else None
    items = await board.encode_entries(history, page)
    answer = {
        "head": make_head_record(history.head),
        "damaged": [entry.entry for entry, item in zip(page, items, strict=True) if item is None],
        "next": after,
    }
    listed = ",".join(item for item in items if item is not None)
    body = ResponseBody(f'{to_json(answer)[:-1]},"entries":[{listed}]}}'.encode(), JSON)
    # Relative: the Host header of a request is not to be trusted, and a proxy may publish the board below a prefix.
    link = {"Link": f'<?{request.url.include_query_params(cursor=after).query}>; rel="next"'} if after else {}
    return make_body_response(request, body, headers=link)


@router.get("/entries/{entry}", response_model=EntryFound)
async def entry(request: Request, entry: str, board: Served) -> Response:
    """Return an entry with its row of the table and its scores."""
    history = await board.read_history()
    match = _find_scored_entry(history, entry)
    (item,) = await board.encode_entries(history, [match])
    if item is None:
        raise HTTPException(500, f"the file of the score of entry {entry} is missing or was changed")
    shown = board.ready
    row = shown.rows.get(entry) if shown else None
    answer = {
        "head": make_head_record(history.head),
        "entry": parse_json(item),
        "row": row.record() if row else None,
        "table_head": make_head_record(shown.snapshot.head) if shown and row else None,
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
    match = _find_entry(board.history(), entry)
    return _make_file_response(request, board, get_submission_path(match.submission), f"{match.submission[:16]}.zip")


def _make_file_response(request: Request, board: Served, path: str, name: str = "", lasting: bool = True) -> Response:
    digest = board.history().file(path)
    file = board.file(path, digest) if digest is not None else None
    if digest is None or file is None:
        raise HTTPException(404, f"{path} is not on this server")
    answer = make_file_response(request, file, digest, name)
    if not lasting:
        answer.headers["Cache-Control"] = "public, no-cache"
    return answer


def _find_entry(history: History, name: str) -> Entry:
    if name not in history.entries:
        raise HTTPException(404, f"entry {name[:40]} is not on this board")
    return history.entries[name]


def _find_scored_entry(history: History, name: str) -> Entry:
    match = _find_entry(history, name)
    if not match.scores:
        raise HTTPException(404, f"entry {name} has no score yet")
    return match


def _matches_filters(
    board: ServedBoard, history: History, entry: Entry, benchmark: str, kind: str, team: str, model: str
) -> bool:
    shown = history.team_names[entry.team, entry.team_key]
    if benchmark not in ("", entry.benchmark) or model not in ("", entry.model):
        return False
    if team not in ("", entry.team, shown, entry.team_key):
        return False
    item = board.encode_entry(history, entry) if kind else None
    return item is None or parse_json(item)["kind"] == kind
