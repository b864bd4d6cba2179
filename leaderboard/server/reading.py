"""What routes share: the board that is shown, and its parts as plain JSON."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.exceptions import HTTPException

from ..client.entries import board_entry
from ..entries import Entry
from ..ledger import Record
from ..teams import shown_names
from .history import History
from .published import Published, Shown


def published_of(request: Request) -> Published:
    found: Published = request.app.state.published
    return found


def shown_of(request: Request) -> Shown:
    return published_of(request).shown()


Board = Annotated[Published, Depends(published_of)]
Now = Annotated[Shown, Depends(shown_of)]


def head(record: Record) -> dict[str, Any]:
    return {"seq": record.seq, "time": record.time, "hash": record.hash}


def entry_of(history: History, name: str) -> Entry:
    """An entry; 404 where there is none."""
    if name not in history.entries:
        raise HTTPException(404, f"entry {name[:40]} is not on this board")
    return history.entries[name]


def entry_item(board: Published, history: History, entry: Entry) -> dict[str, Any]:
    """An entry in lists."""
    return board_entry(board.standing(history, entry), team_names(history)[entry.team, entry.team_key]).to_dict()


def team_names(history: History) -> dict[tuple[str, str], str]:
    """What is shown of each team, by name and key."""
    found: dict[tuple[str, str], str] = history.kept("team_names", lambda: shown_names(history.entries.values()))
    return found
