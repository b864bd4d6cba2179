"""Teams that submitted."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from ...entries import Entry
from ...teams import identify_team, make_team_labels
from ..answers import make_body_response, to_json_body
from ..dependencies import Board, make_head_record
from ..models import Teams

router = APIRouter(tags=["teams"])


@router.get("/teams", response_model=Teams)
def teams(request: Request, board: Board) -> Response:
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
