"""The API for reading a board, as of the record that each response names (`head`): its start and health, tables,
comparisons, entries and sealed windows. Everything else is in the files of its export. Later versions may add fields:
clients must ignore fields that they do not know."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from ...core.errors import FarshiftError, UnknownName
from ...core.settings import get_version
from ..publish.compare import make_compare_page
from ..sealed.results import list_window_results
from .accounts import HTTPProblem
from .answers import ResponseBody, make_body_response, to_json_body
from .served_board import History, Rendered, Served

router = APIRouter(
    tags=["board"],
    default_response_class=JSONResponse,
    responses={503: {"description": "Try again later: `error` says why."}},
)

_LINKS = {
    **{name: name for name in ("openapi.json", "standings", "entries", "windows", "readyz")},
    "ledger": "../../ledger.jsonl",
    "export": "../../board.toml",
}


def _answer(request: Request, history: History, **content: Any) -> Response:
    """The response with some content, and the number, time and hash of the last record that it includes."""
    head = history.head
    content = {"head": {"seq": head.seq, "time": head.time, "hash": head.hash}, **content}
    return make_body_response(request, to_json_body(content))


@router.get("", include_in_schema=False)
@router.get("/")
def start(request: Request, board: Served) -> Response:
    """Return the board's `name`, the time when it was `opened`, its public ed25519 `key` (hexadecimal), the version of
    `farshift` that serves it, the number of `entries`, and `links` to its resources."""
    history = board.history()
    opened = history.records[0]
    return _answer(
        request,
        history,
        name=str(opened.body.get("name", "")),
        opened=opened.time,
        key=board.board.ledger.key,
        farshift=get_version(),
        entries=len(history.entries),
        links=_LINKS,
    )


@router.get("/healthz")
def healthz(request: Request) -> Response:
    """Report that the process is alive: `status` is ok."""
    return make_body_response(request, to_json_body({"status": "ok"}), "no-store")


@router.get("/readyz")
def readyz(request: Request, board: Served) -> Response:
    """Report whether the ledger can be read and tables have been computed: the number of `records`, how many of them
    are not included in the tables yet (`behind`), and whether tables cannot be computed (`problem`)."""
    try:
        history = board.history()
    except FarshiftError as error:
        raise HTTPProblem(503, "the ledger cannot be read: the server's log says why", 10) from error
    if board.ready is None:
        raise HTTPProblem(503, board.problem or "the tables are being computed", 5)
    behind = len(history.records) - len(board.ready.history.records)
    health = {"status": "ready", "records": len(history.records), "behind": behind, "problem": board.problem}
    return make_body_response(request, to_json_body(health), "no-store")


@router.get("/standings")
def standings(request: Request, shown: Rendered) -> Response:
    """Return what `farshift board standings --json` prints: all `tables` with their rows, `suites` (aggregates over
    benchmarks), withdrawn and removed entries (`apart`), and sealed `windows`."""
    body = shown.keep("standings.json", lambda: to_json_body(shown.snapshot.record()))
    return make_body_response(request, body)


MOST_CHARACTERS = 100
"""Characters of an entry's name that are read."""


@router.get("/compare", response_class=Response, responses={200: {"content": {"text/html": {}}}})
def compare(
    request: Request,
    shown: Rendered,
    entry: Annotated[list[str], Query(description="An entry; give two of one table.", max_length=20)],
) -> Response:
    """Return the page that compares two entries of one table."""
    names = [name[:MOST_CHARACTERS] for name in entry]
    try:
        page = make_compare_page(shown.snapshot, shown.view, names, "api/v1/compare", shown.frame)
    except UnknownName:
        raise
    except FarshiftError as error:
        raise HTTPProblem(400, str(error)) from error
    return make_body_response(request, ResponseBody(page.render(), "text/html; charset=utf-8"))


@router.get("/entries")
def entries(request: Request, board: Served) -> Response:
    """List all `entries` with their newest scores, in the ledger's order, including withdrawn and removed ones.
    `damaged`: entries that are left out, because their score's file is missing or was changed."""
    history = board.history()
    listed = {entry.entry: board.describe_entry(history, entry) for entry in history.entries.values() if entry.scores}
    intact = [item for item in listed.values() if item is not None]
    return _answer(request, history, entries=intact, damaged=[name for name, item in listed.items() if item is None])


@router.get("/windows")
def windows(request: Request, board: Served) -> Response:
    """List the sealed `windows`, in the ledger's order: their terms, commitment and state, and, once they are revealed,
    the seed, scores and contrasts."""
    history = board.history()
    return _answer(request, history, windows=list_window_results(board.board.at(history.records)))
