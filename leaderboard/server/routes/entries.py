"""Entries, with their scores and predictions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import HTTPException

from ...entries import Entry, get_submission_path
from ..answers import make_body_response, make_file_response, to_json_body
from ..dependencies import Board, find_entry, get_team_names, make_entry_item, make_head_record
from ..history import History
from ..models import Entries, EntryFound, describe_refusals

router = APIRouter(tags=["entries"])

MOST = 500


@router.get("/entries", response_model=Entries, responses=describe_refusals(404))
def entries(
    request: Request,
    board: Board,
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


@router.get("/entries/{entry}", response_model=EntryFound, responses=describe_refusals(404))
def entry(request: Request, entry: str, board: Board) -> Response:
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
    responses=describe_refusals(404) | {200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
def score(
    request: Request,
    entry: str,
    board: Board,
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
    responses=describe_refusals(404)
    | {
        status: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}
        for status in (200, 206)
    },
)
def submission(request: Request, entry: str, board: Board) -> Response:
    """Return the zip of an entry's submission: predictions and cards. Supports range requests."""
    match = find_entry(board.history(), entry)
    return _make_file_response(request, board, get_submission_path(match.submission), f"{match.submission[:16]}.zip")


def _make_file_response(request: Request, board: Board, path: str, name: str = "", lasting: bool = True) -> Response:
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
