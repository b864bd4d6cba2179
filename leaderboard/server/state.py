"""What the routes that take submissions share: `require_state(request)`."""

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
"""Answers to sealed windows that one server process checks at once."""


@dataclass
class State:
    """board: the board in its folder. queue, files: what was handed in and is not entered yet. accounts: tokens,
    quotas, rate limits and the audit. settings: `[server]` of its settings.toml."""

    board: Board
    queue: Queue
    files: UploadFiles
    accounts: Accounts
    settings: ServerSettings
    checking: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(AT_ONCE))


def open_state(path: Path | str) -> State:
    """The state of a server of the board in a folder."""
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
    """The state of the server that a request came to. Raises `HTTPProblem` (403) where it serves a copy of a board."""
    state = find_state(request.app)
    if state is None:
        raise HTTPProblem.make(403, "this is a copy of a board, which takes nothing in: hand in at the board itself")
    return state


def find_state(app: FastAPI) -> State | None:
    """The state of an application: `app.state.intake`, which is opened here where the application shows the board of a
    folder (`app.state.published.board`) and has none yet."""
    state: State | None = getattr(app.state, "intake", None)
    if state is None:
        board = getattr(getattr(app.state, "published", None), "board", None)
        if isinstance(board, Board):
            state = app.state.intake = open_state(board.path)
    return state
