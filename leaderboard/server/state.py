"""What a running server holds: `request.app.state.board` in every route."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..board import Board
from ..tables.snapshot import Snapshot, take_snapshot
from .accounts.accounts import Accounts
from .intake.queue import Queue
from .settings import ServerSettings, server_settings


class Live(Protocol):
    """What gives the standings as they are now."""

    def snapshot(self) -> Snapshot: ...


@dataclass
class Plain:
    """The standings, computed anew whenever the ledger has grown."""

    board: Board
    _kept: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        head = self.board.records()[-1].hash
        if self._kept is None or self._kept.head.hash != head:
            self._kept = take_snapshot(self.board)
        return self._kept


@dataclass
class State:
    """board: the board in its folder. live: its standings. queue: what was handed in and is not entered yet. accounts:
    tokens, quotas, rate limits and the audit. settings: `[server]` of its settings.toml."""

    board: Board
    live: Live
    queue: Queue
    accounts: Accounts
    settings: ServerSettings


def open_state(path: Path | str, live: Live | None = None) -> State:
    """The state of a server of the board in a folder."""
    board = Board(path)
    settings = server_settings(board.path)
    store = board.ledger.store
    return State(board, live or Plain(board), Queue(store, settings), Accounts(store, settings), settings)
