"""The board itself: its start, health, ledger, teams and sealed windows."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import HTTPException

from ....core.errors import FarshiftError
from ....core.settings import get_version
from ...entries import Entry
from ...sealed.results import make_window_results
from ...sealed.window import Window, WindowPaths, get_utc_time
from ...teams import identify_team, make_team_labels
from ..answers import (
    FOREVER,
    make_body_response,
    make_error_response,
    make_file_response,
    to_json_body,
)
from ..models import Health, Ledger, Start, Teams, WindowFound, Windows, describe_refusals
from ..served_board import Served, make_head_record

router = APIRouter(tags=["board"], responses=describe_refusals(404, 503))

_LINKS = {
    "openapi": "openapi.json",
    "benchmarks": "benchmarks",
    "tables": "tables",
    "standings": "standings",
    "entries": "entries",
    "teams": "teams",
    "windows": "windows",
    "ledger": "ledger",
    "ready": "readyz",
    "export": "../../board.toml",
}


@router.get("", include_in_schema=False)
@router.get("/", response_model=Start)
def start(request: Request, board: Served) -> Response:
    """Return the board's name, its key, and links to its resources."""
    history = board.history()
    opened = history.records[0]
    return make_body_response(
        request,
        to_json_body(
            {
                "name": str(opened.body.get("name", "")),
                "opened": opened.time,
                "key": history.key,
                "farshift": get_version(),
                "read_only": board.board is None,
                "head": make_head_record(history.head),
                "entries": len(history.entries),
                "links": _LINKS,
            }
        ),
    )


@router.get("/healthz", response_model=Health)
def healthz(request: Request) -> Response:
    """Report that the process is alive."""
    return _make_response(Health(status="ok"))


@router.get("/readyz", response_model=Health)
def readyz(request: Request) -> Response:
    """Report whether the ledger can be read and tables have been computed."""
    published = request.app.state.published
    try:
        history = published.history()
    except FarshiftError:
        return make_error_response(503, "the ledger cannot be read: the server's log says why", {"Retry-After": "10"})
    if published.ready is None:
        return make_error_response(503, published.problem or "the tables are being computed", {"Retry-After": "5"})
    behind = history.size - published.ready.history.size
    return _make_response(Health(status="ready", records=history.size, behind=behind, problem=published.problem))


def _make_response(health: Health) -> Response:
    content = to_json_body(health.model_dump()).content
    return Response(content, headers={"Cache-Control": "no-store"}, media_type="application/json")


PAGE = 500
"""Number of records on a full page."""


@router.get("/ledger", response_model=Ledger)
def ledger(request: Request, board: Served, page: Annotated[int, Query(ge=0, le=1 << 40)] = 0) -> Response:
    """Return a page of records. Full pages never change and may be cached; the page after the last one may be empty."""
    history = board.history()
    first, last = page * PAGE, (page + 1) * PAGE
    if first > history.size:
        raise HTTPException(404, f"the ledger has {history.size} records, {PAGE} on a page: there is no page {page}")
    full = last <= history.size
    answer = {
        "page": page,
        "size": last if full else history.size,
        "records": [record.__dict__ for record in history.records[first:last]],
        "next": page + 1 if full else None,
    }
    return make_body_response(request, to_json_body(answer), FOREVER if full else "public, no-cache")


@router.get("/teams", response_model=Teams)
def teams(request: Request, board: Served) -> Response:
    """List the teams by display name."""
    history = board.history()
    grouped: dict[str, list[Entry]] = {}
    for item in history.entries.values():
        grouped.setdefault(identify_team(item), []).append(item)
    shown = make_team_labels(history.entries.values())
    records: list[dict[str, Any]] = [
        {
            "team": shown[team],
            "team_key": entries[-1].team_key,
            "entries": len(entries),
            "benchmarks": sorted({item.benchmark for item in entries}),
            "models": sorted({item.model for item in entries}),
            "newest": entries[-1].time,
        }
        for team, entries in grouped.items()
    ]
    records.sort(key=lambda item: (item["team"], item["team_key"]))
    return make_body_response(request, to_json_body({"head": make_head_record(history.head), "teams": records}))


DRAW = {"draw.toml": "card", "inputs.parquet": "inputs"}
SEEN = ("open", "due", "revealed")
"""States in which the test set is published."""


@router.get("/windows", response_model=Windows)
def windows(request: Request, board: Served) -> Response:
    """List the windows in the ledger's order."""
    history, now = board.history(), get_utc_time()
    records = [
        {
            "window": item.name,
            "benchmark": item.terms.benchmark,
            "state": item.state(now),
            "opens": item.terms.opens,
            "closes": item.terms.closes,
            "answers": len(item.answers),
        }
        for item in history.windows.values()
    ]
    return make_body_response(request, to_json_body({"head": make_head_record(history.head), "windows": records}))


@router.get("/windows/{window}", response_model=WindowFound)
def window(request: Request, window: str, board: Served) -> Response:
    """Return a window with its terms, and its results after the reveal."""
    history = board.history()
    match = _get_window(board, window)
    answer: dict[str, Any] = make_window_results(board.view(history), match.name)
    answer["head"] = make_head_record(history.head)
    open = match.state(get_utc_time()) in SEEN
    answer["files"] = {name: f"windows/{match.name}/draw/{name}" for name in DRAW} if open else {}
    return make_body_response(request, to_json_body(answer))


@router.get(
    "/windows/{window}/draw/{name}",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def draw(request: Request, window: str, name: Literal["draw.toml", "inputs.parquet"], board: Served) -> Response:
    """Return a file of a window's test set, which is available from its opening: row ids and inputs, no labels."""
    match = _get_window(board, window)
    state = match.state(get_utc_time())
    path: str = getattr(WindowPaths(match.name), DRAW[name])
    digest = board.history().file(path)
    if state not in SEEN or digest is None:
        raise HTTPException(404, f"window {match.name} is {state}: its test set is published at {match.terms.opens}")
    file = board.file(path, digest)
    if file is None:
        raise HTTPException(404, f"{path} is not on this server")
    return make_file_response(request, file, digest, name)


def _get_window(board: Served, name: str) -> Window:
    known = board.history().windows
    if name not in known:
        raise HTTPException(404, f"there is no window {name[:80]}")
    return known[name]
