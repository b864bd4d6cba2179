"""The API for reading a board, as of the record that each response names: its start and health, tables, comparisons,
entries and sealed windows. Everything else is in the files of its export."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from ...core.errors import FarshiftError, UnknownName
from ...core.settings import get_version
from ..client import BoardEntry
from ..ledger import Record
from ..publish.compare import make_compare_page
from ..sealed.results import list_window_results
from .accounts import HTTPProblem
from .answers import ResponseBody, make_body_response, to_json_body
from .served_board import Rendered, Served, ServedBoard


class Answer(BaseModel):
    """A JSON response. Later versions may add fields, so clients must ignore fields that they do not know."""

    model_config = ConfigDict(extra="allow")


class Head(Answer):
    """The last record of the ledger that is included in a response."""

    seq: int = Field(description="Its number, from 0.")
    time: str
    hash: str


class Start(Answer):
    """The board and links to its resources."""

    name: str = Field(description="The board's title.")
    opened: str
    key: str = Field(description="The board's public ed25519 key, hexadecimal.")
    farshift: str = Field(description="The version of Farshift that serves it.")
    read_only: bool = Field(description="Whether it is a copy, which accepts no submissions.")
    head: Head
    entries: int
    links: dict[str, str] = Field(description="Relative addresses of the resources, by name.")


class Health(Answer):
    """The status of the server."""

    status: str
    records: int = Field(0, description="Records of the ledger.")
    behind: int = Field(0, description="How many of them are not yet included in the tables.")
    problem: str = Field("", description="Whether tables cannot be computed; empty if they can. The log says why.")


class Standings(Answer):
    """All tables, as `farshift board standings --json` prints them."""

    board: str
    head: Head
    tables: list[dict[str, Any]]
    apart: list[dict[str, Any]] = Field(description="Entries that were withdrawn or removed, with the reason.")
    suites: list[dict[str, Any]] = Field(description="Aggregates over benchmarks.")
    windows: list[dict[str, Any]] = Field(description="Sealed windows: see /windows.")


class Entries(Answer):
    """All entries, in the ledger's order."""

    head: Head
    entries: list[BoardEntry]
    damaged: list[str] = Field(description="Entries that are left out: their score's file is missing or was changed.")


class Windows(Answer):
    """All sealed windows, in the ledger's order: their terms, commitment and state, and, once they are revealed, the
    seed, scores and contrasts."""

    head: Head
    windows: list[dict[str, Any]]


router = APIRouter(tags=["board"], responses={503: {"description": "Try again later: `error` says why."}})

_LINKS = {
    **{name: name for name in ("openapi.json", "standings", "entries", "windows", "readyz")},
    "ledger": "../../ledger.jsonl",
    "export": "../../board.toml",
}


def _make_head_record(record: Record) -> dict[str, Any]:
    return {"seq": record.seq, "time": record.time, "hash": record.hash}


@router.get("", include_in_schema=False)
@router.get("/", response_model=Start)
def start(request: Request, board: Served) -> Response:
    """Return the board's name, its key, and links to its resources."""
    history = board.history()
    opened = history.records[0]
    answer = {
        "name": str(opened.body.get("name", "")),
        "opened": opened.time,
        "key": history.key,
        "farshift": get_version(),
        "read_only": board.board is None,
        "head": _make_head_record(history.head),
        "entries": len(history.entries),
        "links": _LINKS,
    }
    return make_body_response(request, to_json_body(answer))


@router.get("/healthz", response_model=Health)
def healthz(request: Request) -> Response:
    """Report that the process is alive."""
    return make_body_response(request, to_json_body(Health(status="ok").model_dump()), "no-store")


@router.get("/readyz", response_model=Health)
def readyz(request: Request) -> Response:
    """Report whether the ledger can be read and tables have been computed."""
    published: ServedBoard = request.app.state.published
    try:
        history = published.history()
    except FarshiftError as error:
        raise HTTPProblem.make(503, "the ledger cannot be read: the server's log says why", 10) from error
    if published.ready is None:
        raise HTTPProblem.make(503, published.problem or "the tables are being computed", 5)
    behind = history.size - published.ready.history.size
    health = Health(status="ready", records=history.size, behind=behind, problem=published.problem)
    return make_body_response(request, to_json_body(health.model_dump()), "no-store")


@router.get("/standings", response_model=Standings)
def standings(request: Request, shown: Rendered) -> Response:
    """Return all tables with their rows, aggregates over benchmarks, withdrawn and removed entries, and windows."""
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
        raise HTTPProblem.make(400, str(error)) from error
    return make_body_response(request, ResponseBody(page.render(), "text/html; charset=utf-8"))


@router.get("/entries", response_model=Entries)
def entries(request: Request, board: Served) -> Response:
    """List all entries with their newest scores, including withdrawn and removed ones."""
    history = board.history()
    listed = {entry.entry: board.describe_entry(history, entry) for entry in history.entries.values() if entry.scores}
    answer = {
        "head": _make_head_record(history.head),
        "entries": [item for item in listed.values() if item is not None],
        "damaged": [name for name, item in listed.items() if item is None],
    }
    return make_body_response(request, to_json_body(answer))


@router.get("/windows", response_model=Windows)
def windows(request: Request, board: Served) -> Response:
    """List the sealed windows."""
    history = board.history()
    answer = {"head": _make_head_record(history.head), "windows": list_window_results(board.view(history))}
    return make_body_response(request, to_json_body(answer))
