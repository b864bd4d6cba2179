"""State shared by the routes that accept submissions: `require_state(request)`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING

from ..board import Board
from .accounts.accounts import Accounts
from .http_problem import HTTPProblem
from .intake.files import UploadFiles
from .intake.queue import Queue
from .intake.stored_files import open_upload_files
from .settings import ServerSettings, read_server_settings

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

AT_ONCE = 2
"""Maximum number of sealed-window answers that one server process checks at once."""


@dataclass
class State:
    """The state of a server. board: the board in its folder. queue, files: submissions that are not entered yet.
    accounts: tokens, quotas, rate limits and the audit log. settings: `[server]` of its settings.toml."""

    board: Board
    queue: Queue
    files: UploadFiles
    accounts: Accounts
    settings: ServerSettings
    checking: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(AT_ONCE))


def open_state(path: Path | str) -> State:
    """Open the server state of the board in a folder."""
    board = Board(path)
    settings = read_server_settings(board.path)
    store = board.ledger.store
    return State(
        board,
        Queue(store, settings),
        open_upload_files(board),
        Accounts(store, settings),
        settings,
    )


def require_state(request: Request) -> State:
    """Return the state of the server that handles a request. Raises `HTTPProblem` (403) if it serves a copy of a
    board."""
    state = find_state(request.app)
    if state is None:
        raise HTTPProblem.make(403, "this is a copy of a board and accepts no submissions: submit to the board itself")
    return state


def find_state(app: FastAPI) -> State | None:
    """Return the state of an application, `app.state.intake`. It is opened here on first use if the application serves
    the board of a folder (`app.state.published.board`)."""
    state: State | None = getattr(app.state, "intake", None)
    if state is None:
        board = getattr(getattr(app.state, "published", None), "board", None)
        if isinstance(board, Board):
            state = app.state.intake = open_state(board.path)
    return state
