"""Sealed windows: what each has published by its state. Labels are in no file of a board before the reveal."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import HTTPException

from ...sealed.results import results
from ...sealed.times import utc_now
from ...sealed.window import Places, Window
from ..answers import as_json, file_answer, stored_answer
from ..models import WindowFound, Windows, refused
from ..reading import Board, head

router = APIRouter(tags=["windows"])

DRAW = {"draw.toml": "card", "inputs.parquet": "inputs"}
SEEN = ("open", "due", "revealed")
"""States in which a draw is published."""


@router.get("/windows", response_model=Windows)
def windows(request: Request, board: Board) -> Response:
    """The windows, in the ledger's order."""
    history, now = board.history(), utc_now()
    found = [
        {
            "window": one.name,
            "benchmark": one.terms.benchmark,
            "state": one.state(now),
            "opens": one.terms.opens,
            "closes": one.terms.closes,
            "answers": len(one.answers),
        }
        for one in history.windows.values()
    ]
    return stored_answer(request, as_json({"head": head(history.head), "windows": found}))


@router.get("/windows/{window}", response_model=WindowFound, responses=refused(404))
def window(request: Request, window: str, board: Board) -> Response:
    """A window: its terms, and its results once it is revealed."""
    history = board.history()
    found = _window(board, window)
    answer: dict[str, Any] = results(board.view(history), found.name)
    answer["head"] = head(history.head)
    open = found.state(utc_now()) in SEEN
    answer["files"] = {name: f"windows/{found.name}/draw/{name}" for name in DRAW} if open else {}
    return stored_answer(request, as_json(answer))


@router.get(
    "/windows/{window}/draw/{name}",
    response_class=Response,
    responses=refused(404) | {200: {"content": {"application/octet-stream": {}}}},
)
def draw(request: Request, window: str, name: Literal["draw.toml", "inputs.parquet"], board: Board) -> Response:
    """A file of its draw, once it is open: row ids and inputs, no labels."""
    found = _window(board, window)
    state = found.state(utc_now())
    path: str = getattr(Places(found.name), DRAW[name])
    digest = board.history().file(path)
    if state not in SEEN or digest is None:
        raise HTTPException(404, f"window {found.name} is {state}: its draw is published from {found.terms.opens}")
    file = board.file(path)
    if file is None:
        raise HTTPException(404, f"{path} is not here")
    return file_answer(request, file, digest, name)


def _window(board: Board, name: str) -> Window:
    found = board.history().windows
    if name not in found:
        raise HTTPException(404, f"there is no window {name[:80]}")
    return found[name]
