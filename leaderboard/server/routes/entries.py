"""Entries: what was submitted, with its scores and predictions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import HTTPException

from ...entries import Entry, submission_path
from ..answers import as_json, file_answer, stored_answer
from ..history import History
from ..models import Entries, EntryFound, refused
from ..reading import Board, entry_item, entry_of, head, team_names

router = APIRouter(tags=["entries"])

MOST = 500


@router.get("/entries", response_model=Entries, responses=refused(404))
def entries(
    request: Request,
    board: Board,
    benchmark: Annotated[str, Query(description="Only of this benchmark.", examples=["scan/length"])] = "",
    kind: Annotated[str, Query(description="Only of this kind of shift.", examples=["length"])] = "",
    team: Annotated[str, Query(description="Only of this team: its name as shown, or its public key.")] = "",
    model: Annotated[str, Query(description="Only of this model.")] = "",
    cursor: Annotated[str, Query(description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
) -> Response:
    """Entries in the ledger's order, those that were withdrawn or removed among them."""
    history = board.history()
    every = list(history.entries.values())
    first = 0
    if cursor:
        entry_of(history, cursor)
        first = 1 + next(place for place, one in enumerate(every) if one.entry == cursor)
    found: list[Entry] = []
    more = False
    for one in every[first:]:
        if not one.scores or not _wanted(history, one, benchmark, team, model):
            continue
        if kind and board.standing(history, one).score.kind != kind:
            continue
        if len(found) == limit:
            more = True
            break
        found.append(one)
    following = found[-1].entry if more else None
    answer = {
        "head": head(history.head),
        "entries": [entry_item(board, history, one) for one in found],
        "next": following,
    }
    link = {"Link": f'<{request.url.include_query_params(cursor=following)}>; rel="next"'} if following else {}
    return stored_answer(request, as_json(answer), headers=link)


@router.get("/entries/{entry}", response_model=EntryFound, responses=refused(404))
def entry(request: Request, entry: str, board: Board) -> Response:
    """An entry with its row of the table, and its scores."""
    history = board.history()
    found = _scored(history, entry)
    shown = board.ready
    rows = [row for view in shown.snapshot.views for row in view.rows if row.standing.entry == entry] if shown else []
    answer = {
        "head": head(history.head),
        "entry": entry_item(board, history, found),
        "row": rows[0].record() if rows else None,
        "table_head": head(shown.snapshot.head) if shown and rows else None,
        "scores": [
            {"scorer": one.scorer, "entry_identity": one.entry_identity, "path": one.path, "sha256": one.digest}
            for one in found.scores
        ],
    }
    return stored_answer(request, as_json(answer))


@router.get(
    "/entries/{entry}/score",
    response_class=Response,
    responses=refused(404) | {200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
def score(
    request: Request,
    entry: str,
    board: Board,
    scorer: Annotated[int | None, Query(description="The scorer's version; the newest by default.")] = None,
) -> Response:
    """The file of its score, byte for byte as the ledger's digest says."""
    found = _scored(board.history(), entry)
    chosen = [one for one in found.scores if scorer in (None, one.scorer)]
    if not chosen:
        raise HTTPException(404, f"entry {entry} has no score by scorer {scorer}")
    return _file(request, board, chosen[-1].path, lasting=scorer is not None)


@router.get(
    "/entries/{entry}/submission",
    response_class=Response,
    responses=refused(404)
    | {
        status: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}
        for status in (200, 206)
    },
)
def submission(request: Request, entry: str, board: Board) -> Response:
    """The zip that it came in: predictions and cards. Ranges of it can be asked for."""
    found = entry_of(board.history(), entry)
    return _file(request, board, submission_path(found.submission), f"{found.submission[:16]}.zip")


def _file(request: Request, board: Board, path: str, name: str = "", lasting: bool = True) -> Response:
    digest = board.history().file(path)
    file = board.file(path) if digest is not None else None
    if digest is None or file is None:
        raise HTTPException(404, f"{path} is not here")
    answer = file_answer(request, file, digest, name)
    if not lasting:
        answer.headers["Cache-Control"] = "public, no-cache"
    return answer


def _scored(history: History, name: str) -> Entry:
    found = entry_of(history, name)
    if not found.scores:
        raise HTTPException(404, f"entry {name} has no score yet")
    return found


def _wanted(history: History, one: Entry, benchmark: str, team: str, model: str) -> bool:
    shown: Any = team_names(history)[one.team, one.team_key]
    return benchmark in ("", one.benchmark) and model in ("", one.model) and team in ("", one.team, shown, one.team_key)
