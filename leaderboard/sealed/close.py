"""The close of a window: every answer scored, the seed revealed.

Scores and seed go into the ledger together, so a process that is killed leaves a window that is closed and not yet
revealed, which `close` carries on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.canonical import canonical_json
from ...core.errors import FarshiftError
from ...core.progress import advance
from ..storage.board_files import digests
from .answers import check_answers, draw_of
from .benchmark import sealed_benchmark
from .draw_folder import benchmark_of
from .drawing import draw
from .scoring import predictions_digest, result
from .seal import secret_seed
from .times import Clock, utc_now
from .window import Places, Window, find_window, windows

if TYPE_CHECKING:
    from ..board import Board


def close(board: Board, window: str, clock: Clock = utc_now) -> Window:
    """Close a window whose time is over: take no more answers, score those there are, reveal the seed. Closing it again
    changes nothing. `FarshiftError` where its time is not over."""
    with board.locked():
        found = find_window(board.ledger.records(), window)
        state = found.state(clock())
        if state == "revealed":
            return found
        if state != "due":
            raise FarshiftError(f"window {found.name} closes at {found.terms.closes}: it is {state} now")
        if found.closed is None:
            board.ledger.append([("window_closed", {"window": found.name})])
        _reveal(board, found)
        return windows(board.ledger.records())[found.name]


def _reveal(board: Board, window: Window) -> None:
    secret = secret_seed(board, window.name)
    if window.terms.commitment(secret) != window.commitment:
        raise FarshiftError(f"the seed of window {window.name} is not the one that the board committed to: put it back")
    public = benchmark_of(window.terms)
    places = Places(window.name)
    given = draw_of(board, window.name)
    sealed = sealed_benchmark(public, given, draw(public, window.drawn_by(secret)))
    events: list[tuple[str, dict[str, Any]]] = []
    files: dict[str, bytes] = {}
    for number, (digest, body) in enumerate(window.answers.items()):
        file = board.file(places.answers(digest)) or board.path / places.answers(digest)
        _, entry = check_answers(file, sealed)
        mine = {places.score(digest): canonical_json(result(sealed, entry))}
        said = {name: body[name] for name in ("window", "submission", "team", "model")}
        said["predictions"] = predictions_digest(entry)
        events.append(("scored", said | {"files": digests(mine)}))
        files |= mine
        advance("scoring", number + 1, len(window.answers))
    board.enter([*events, ("seed_revealed", {"window": window.name, "seed": secret.hex()})], files)
