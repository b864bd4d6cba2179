"""The records of the ledger."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import HTTPException

from ..answers import FOREVER, make_body_response, to_json_body
from ..dependencies import Board
from ..models import Ledger, describe_refusals

router = APIRouter(tags=["ledger"])

PAGE = 500
"""Number of records on a full page."""


@router.get("/ledger", response_model=Ledger, responses=describe_refusals(404))
def ledger(request: Request, board: Board, page: Annotated[int, Query(ge=0, le=1 << 40)] = 0) -> Response:
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
