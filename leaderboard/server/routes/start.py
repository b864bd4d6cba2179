"""The start of the API."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ....core.settings import get_version
from ..answers import make_body_response, to_json_body
from ..dependencies import Board, make_head_record
from ..models import Start, describe_refusals

router = APIRouter(tags=["board"])

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
@router.get("/", response_model=Start, responses=describe_refusals(503))
def start(request: Request, board: Board) -> Response:
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
