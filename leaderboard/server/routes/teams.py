"""Teams: who submitted."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from ...entries import Entry
from ...teams import labels, team_of
from ..answers import as_json, stored_answer
from ..models import Teams
from ..reading import Board, head

router = APIRouter(tags=["teams"])


@router.get("/teams", response_model=Teams)
def teams(request: Request, board: Board) -> Response:
    """The teams, by the name that is shown of each."""
    history = board.history()
    grouped: dict[str, list[Entry]] = {}
    for one in history.entries.values():
        grouped.setdefault(team_of(one), []).append(one)
    shown = labels(history.entries.values())
    found: list[dict[str, Any]] = [
        {
            "team": shown[team],
            "team_key": entries[-1].team_key,
            "entries": len(entries),
            "benchmarks": sorted({one.benchmark for one in entries}),
            "models": sorted({one.model for one in entries}),
            "newest": entries[-1].time,
        }
        for team, entries in grouped.items()
    ]
    found.sort(key=lambda one: (one["team"], one["team_key"]))
    return stored_answer(request, as_json({"head": head(history.head), "teams": found}))
