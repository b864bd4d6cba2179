"""What is here."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ....core.version import version
from ..answers import as_json, stored_answer
from ..models import Start, refused
from ..reading import Board, head

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
@router.get("/", response_model=Start, responses=refused(503))
def start(request: Request, board: Board) -> Response:
    """The board, its key, and where its parts are."""
    history = board.history()
    opened = history.records[0]
    return stored_answer(
        request,
        as_json(
            {
                "name": str(opened.body.get("name", "")),
                "opened": opened.time,
                "key": history.key,
                "farshift": version(),
                "read_only": board.board is None,
                "head": head(history.head),
                "entries": len(history.entries),
                "links": _LINKS,
            }
        ),
    )
