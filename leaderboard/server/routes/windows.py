"""Sealed windows and the files published in each state. No file of a board contains labels before the reveal."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import HTTPException

from ...sealed.results import make_window_results
from ...sealed.times import get_utc_time
from ...sealed.window import Window, WindowPaths
from ..answers import make_body_response, make_file_response, to_json_body
from ..dependencies import Board, make_head_record
from ..models import WindowFound, Windows, describe_refusals

router = APIRouter(tags=["windows"])

DRAW = {"draw.toml": "card", "inputs.parquet": "inputs"}
SEEN = ("open", "due", "revealed")
"""States in which the test set is published."""


@router.get("/windows", response_model=Windows)
def windows(request: Request, board: Board) -> Response:
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


@router.get("/windows/{window}", response_model=WindowFound, responses=describe_refusals(404))
def window(request: Request, window: str, board: Board) -> Response:
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
    responses=describe_refusals(404) | {200: {"content": {"application/octet-stream": {}}}},
)
def draw(request: Request, window: str, name: Literal["draw.toml", "inputs.parquet"], board: Board) -> Response:
    """Return a file of a window's test set, which is available from its opening: row ids and inputs, no labels."""
    match = _get_window(board, window)
    state = match.state(get_utc_time())
    path: str = getattr(WindowPaths(match.name), DRAW[name])
    digest = board.history().file(path)
    if state not in SEEN or digest is None:
        raise HTTPException(404, f"window {match.name} is {state}: its test set is published at {match.terms.opens}")
    file = board.file(path)
    if file is None:
        raise HTTPException(404, f"{path} is not on this server")
    return make_file_response(request, file, digest, name)


def _get_window(board: Board, name: str) -> Window:
    known = board.history().windows
    if name not in known:
        raise HTTPException(404, f"there is no window {name[:80]}")
    return known[name]
