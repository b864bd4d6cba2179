"""Dependencies shared by routes: the served board, and its parts as plain JSON."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.exceptions import HTTPException

from ..client.entries import make_board_entry
from ..entries import Entry
from ..ledger import Record
from ..teams import make_display_names
from .history import History
from .served_board import RenderedBoard, ServedBoard


def get_served_board(request: Request) -> ServedBoard:
    board: ServedBoard = request.app.state.published
    return board


def get_rendered_board(request: Request) -> RenderedBoard:
    return get_served_board(request).shown()


Board = Annotated[ServedBoard, Depends(get_served_board)]
Now = Annotated[RenderedBoard, Depends(get_rendered_board)]


def make_head_record(record: Record) -> dict[str, Any]:
    return {"seq": record.seq, "time": record.time, "hash": record.hash}


def find_entry(history: History, name: str) -> Entry:
    """Return an entry. Raises 404 if it does not exist."""
    if name not in history.entries:
        raise HTTPException(404, f"entry {name[:40]} is not on this board")
    return history.entries[name]


def make_entry_item(board: ServedBoard, history: History, entry: Entry) -> dict[str, Any]:
    """Return an entry as an item of a list."""
    return make_board_entry(
        board.standing(history, entry), get_team_names(history)[entry.team, entry.team_key]
    ).to_dict()


def get_team_names(history: History) -> dict[tuple[str, str], str]:
    """Return the display name of each team, by name and key."""
    names: dict[tuple[str, str], str] = history.get_cached(
        "team_names", lambda: make_display_names(history.entries.values())
    )
    return names
